"""The three tutorials run from top to bottom, and print what their text says that they print.

Noise, keys and ports are new in every run, so words and exact figures are compared, and not noise.
"""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.left_out import need_module, need_program

for _module in ("nbclient", "nbformat", "ipykernel"):
    need_module(_module, extra="dev")
for _module in ("sklearn", "matplotlib"):
    need_module(_module, extra="experiments")
for _module in ("fastapi", "skops"):
    need_module(_module, extra="service")

from tests.docs.notebooks import NAMES, TUTORIALS, printed, read_notebook, run_apart

ROOT = Path(__file__).parents[2]
THIS_MACHINE = re.compile(r"/(?:home|root|tmp|work|Users|opt|usr)/|pypi|\.venv")
LINK = re.compile(r"\]\(([^)#]+)(?:#[^)]*)?\)")


def texts(notebook: Any) -> dict[str, str]:
    """What each code cell prints, by the cell's id."""
    return {each.id: printed(each) for each in notebook.cells if each.cell_type == "code"}


def prose(notebook: Any) -> str:
    return "\n".join(each.source for each in notebook.cells if each.cell_type == "markdown")


def all_printed(notebook: Any) -> str:
    return "\n".join(texts(notebook).values())


def flat(text: str) -> str:
    """Without the line breaks of a terminal of eighty columns."""
    return " ".join(text.split())


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_tutorial_was_run_from_top_to_bottom(name: str) -> None:
    code = [each for each in read_notebook(name).cells if each.cell_type == "code"]
    assert [each.execution_count for each in code] == list(range(1, len(code) + 1))
    assert not [each.id for each in code for out in each.outputs if out.output_type == "error"]
    assert sum(bool(printed(each)) for each in code) > len(code) / 2


@pytest.mark.parametrize("name", NAMES)
def test_what_a_cell_printed_is_stored_in_one_piece(name: str) -> None:
    for cell in read_notebook(name).cells:
        streams = [each.get("name") for each in cell.get("outputs", ())]
        assert not [one for one, next_ in pairwise(streams) if one and one == next_], cell.id


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_tutorial_says_nothing_of_the_machine_that_ran_it(name: str) -> None:
    stored = json.loads((TUTORIALS / f"{name}.ipynb").read_text(encoding="utf-8"))
    for cell in stored["cells"]:
        for output in cell.get("outputs", []):
            output.get("data", {}).pop("image/png", None)
        assert not THIS_MACHINE.search(json.dumps(cell.get("outputs", []))), cell["id"]
    assert set(stored["metadata"]) == {"kernelspec", "language_info"}


@pytest.mark.parametrize("name", NAMES)
def test_the_links_of_a_tutorial_lead_somewhere_and_its_lines_are_short(name: str) -> None:
    text = prose(read_notebook(name))
    assert max(map(len, text.splitlines())) <= 100
    for link in LINK.findall(text):
        assert (TUTORIALS / link).resolve().is_file(), link


def test_readme_and_usage_lead_to_the_tutorials() -> None:
    for page, folder in (("README.md", "docs/tutorials"), ("docs/usage.md", "tutorials")):
        text = (ROOT / page).read_text(encoding="utf-8")
        assert f"({folder}/data-scientist.ipynb)" in text
    usage = (ROOT / "docs" / "usage.md").read_text(encoding="utf-8")
    assert all(f"(tutorials/{name}.ipynb)" in usage for name in NAMES)


@pytest.mark.slow
def test_the_data_scientist_reads_a_verdict_and_sees_what_the_aggregator_sees(
    tmp_path: Path,
) -> None:
    for notebook in (read_notebook("data-scientist"), run_apart("data-scientist", tmp_path)):
        said = all_printed(notebook)
        # Section 2 and 3: worth it to an outsider, not to be told for a teacher.
        assert flat(said).count("Worth it to an outsider: ") == 2
        assert flat(said).count("Cannot be told from ") == 2
        assert "To a teacher it would be worth it with at most" in flat(said)
        assert "worth it to an outsider: True" in said
        assert "worth it to a teacher: False" in said
        # 4: a larger ε is a better answer.
        plan = re.findall(r"^ +(\d+) +40 +(0\.\d+) +(?:True|False)$", said, flags=re.MULTILINE)
        assert [int(epsilon) for epsilon, _ in plan] == [1, 2, 4, 8, 16]
        assert sorted(plan, key=lambda each: float(each[1])) == plan
        assert "1 vote per teacher: " in said
        # 5 and 6: repeats are free, and the student spends the rest.
        assert "the same rows again, the same answers: True" in said
        assert "spent: 10 of 40 answers" in said
        assert re.search(r"the student is right on \d+% of 78 records", said)
        assert "spent, once and for all: 40 answers, ε = 8.0" in said
        # 7: neither the row nor the votes can be read; the list and the counts can.
        kinds = ["cast request", "masked ballot", "delivered list", "endorsement"]
        places = [said.index(kind) for kind in [*kinds, "certified sum", "seed rows"]]
        assert places == sorted(places)
        assert "b'coarse' is in a message: False" in said
        assert "b'uneven' is in a message: False" in said
        sealed = re.findall(r"voted malignant: ([0-9a-f]{48})…", said)
        assert len(set(sealed)) == 2
        [(plain, compressed)] = re.findall(r"(\d+) bytes of sealed votes, compressed: (\d+)", said)
        assert int(compressed) >= int(plain) > 0
        assert "in the list: " + " ".join(map(str, range(1, 21))) in said
        assert re.search(
            r"counts, which are released: \{'benign': -?\d+, 'malignant': -?\d+\}", said
        )


@pytest.mark.slow
def test_the_operator_kills_a_teacher_and_finds_everything_in_order(tmp_path: Path) -> None:
    need_program("nats-server", package="nats-server")
    for notebook in (read_notebook("operator"), run_apart("operator", tmp_path)):
        said = all_printed(notebook)
        assert "broker aggregator teacher-1 teacher-2 teacher-3 teacher-4" in said
        assert "5 labels in five-labels.csv" in said
        assert "3 labels in three-labels.csv" in said
        # 4: the dead teacher answered five, the others eight; or five less, if late at the start.
        rows = re.findall(r"[0-9a-f]{16} +20 +(\d+) +(\d+) +\d +8 ", said)
        [living, dead] = [(int(answered), int(left)) for answered, left in rows]
        assert living in {(8, 12), (3, 17)}
        assert dead in {(5, 15), (0, 20)}
        # 5: the receipt holds, and not with another byte.
        assert "3 of 4 teachers voted on 3 queries of task 'local'" in flat(said)
        assert said.count("✓ endorsements") == 1
        assert "Whether that is the task you know of was not checked" not in said
        assert "refused, exit code 1" in said
        # 6: the home is in order but for one warning, and its process is started again.
        assert "✗" not in said
        assert re.findall(r"^! (\w+)", said, flags=re.MULTILINE) == ["ledger"]
        assert f"{dead[1]} of 20 queries are left" in said
        assert "started again: teacher-4\n" in said
        # 7 and 8.
        assert re.search(r"copied: \d+ entries, all as written", said)
        assert "6 processes stopped." in said


@pytest.mark.slow
def test_the_researcher_finds_the_papers_calibration_broken_and_ours_not(tmp_path: Path) -> None:
    for notebook in (read_notebook("researcher"), run_apart("researcher", tmp_path)):
        said = all_printed(notebook)
        assert "certified: True" in said
        # 2: of the two lines that are the paper's one keeps the promise.
        kept = re.findall(r"^ (\S+) +paper .*?(\d\S*)× +(\S+) +(yes|NO)", said, re.MULTILINE)
        [binomial, gaussian] = kept
        assert (binomial[0], binomial[3]) == ("binomial", "yes")
        assert 2.5 < float(binomial[1]) < 3.5
        assert (gaussian[0], gaussian[3]) == ("discrete-gaussian", "NO")
        assert 80 < float(gaussian[2]) / 1e-3 < 90
        # 3: the attack proves less than was promised, and more where it is broken.
        ours, papers = map(float, re.findall(r"ε proved  ([\d.]+),", said))
        assert ours < 0.5 < papers
        assert "not refuted: the attack proves no more than was promised" in said
        assert "the promise is BROKEN, as the certificate says too" in said
        assert "exit code 1: refuted" in said
        # 4: the figure is there, and the discrete Gaussian has no certificate.
        assert "no certificate at 14 of its 14 points" in flat(said)
        assert "accuracy-epsilon-breast-cancer.png" in said
        assert any(
            "image/png" in out.get("data", {})
            for each in notebook.cells
            for out in each.get("outputs", [])
        )
        # 5: a class and one label cost the same, three labels √3 times as much, a number less.
        last = texts(notebook)["researcher-14"].splitlines()[1:]
        one_class, one_label, three_labels, coarse, fine = (float(row.split()[-1]) for row in last)
        assert one_label == one_class
        assert three_labels / one_class == pytest.approx(3**0.5, rel=0.02)
        assert coarse < one_class
        assert fine == pytest.approx(coarse, rel=0.02)


def test_nats_server_is_named_where_it_is_needed() -> None:
    """The operator's notebook says so itself, and stops at once where it is missing."""
    notebook = read_notebook("operator")
    assert "apt-get install nats-server" in prose(notebook)
    first = next(each for each in notebook.cells if each.cell_type == "code")
    assert "install nats-server first" in first.source
