"""`dppp reproduce` on Breast Cancer, from the command to the report."""

import csv
import functools
import json

import pytest
from tests.cli.commands import assert_refused, json_of, run_dppp
from tests.experiments.several_votes.made_up import made_up_connections

from dppp.cli import reproduce as command
from dppp.experiments import report as whole_report
from dppp.experiments import reproduce, skew
from dppp.experiments.accuracy import curves
from dppp.experiments.costs import overhead
from dppp.experiments.reproduce import reproduce_overhead
from dppp.experiments.several_votes import against_votes, company, learners
from dppp.experiments.teachers import ensembles


@pytest.fixture(autouse=True)
def small(tmp_path_factory, monkeypatch):
    """One cache for all tests here, and few records through the real protocol."""
    monkeypatch.setitem(reproduce.ENCRYPTED, "breast-cancer", (40, (reproduce.BEST,)))
    monkeypatch.setenv("DPPP_CACHE", str(tmp_path_factory.getbasetemp() / "reproduce-cache"))


@pytest.fixture
def few_epsilons(monkeypatch):
    some = functools.partial(curves.accuracy_by_epsilon, epsilons=(0.1, 1.0))
    monkeypatch.setattr(reproduce, "accuracy_by_epsilon", some)


def test_accuracy_against_epsilon_makes_table_figure_claims_and_an_encrypted_point(tmp_path):
    found = json_of(
        f"reproduce accuracy-epsilon --dataset breast-cancer --out {tmp_path} --repetitions 3"
    )
    with (tmp_path / "accuracy-epsilon-breast-cancer.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["epsilon"] for row in rows} == {
        "",
        "0.01",
        "0.02",
        "0.05",
        "0.1",
        "0.2",
        "0.5",
        "1.0",
    }
    assert (tmp_path / "accuracy-epsilon-breast-cancer.png").is_file()
    assert {claim["calibration"] for claim in found["claims"]} == {"none", "paper", "certified"}
    assert [point["agrees"] for point in found["encrypted"]] == [True]
    assert "no certificate" in found["shows"]


def test_accuracy_against_delta_says_whether_epsilon_matters_more(tmp_path, few_epsilons):
    result = run_dppp(
        f"reproduce accuracy-delta --dataset breast-cancer --out {tmp_path} --repetitions 3"
    )
    assert result.returncode == 0, result.stderr
    assert "How far ε moves accuracy, and δ at ε = 0.5:" in " ".join(result.stdout.split())
    assert (tmp_path / "accuracy-delta-breast-cancer.png").is_file()


def test_all_makes_one_report_that_needs_no_other_file(tmp_path, monkeypatch, few_epsilons):
    small = lambda out: reproduce_overhead(out, teachers=(4,), modulus_bits=(1024,))  # noqa: E731
    monkeypatch.setattr(whole_report, "reproduce_overhead", small)
    found = json_of(
        f"reproduce all --dataset breast-cancer --out {tmp_path} --repetitions 2 --no-encrypted"
    )
    names = [artefact["command"] for artefact in found["artefacts"]]
    assert names == ["accuracy-epsilon", "accuracy-delta", "overhead"]
    report = (tmp_path / "report.html").read_text()
    assert report.count("data:image/png;base64,") == 3
    assert "http" not in report.replace("http-equiv", "")
    assert "not certified" in report


def test_a_point_that_disagrees_fails_the_command(tmp_path, monkeypatch, few_epsilons):
    from dppp.experiments.accuracy import encrypted

    monkeypatch.setattr(encrypted, "is_likely_number", lambda *_: False)
    options = f"--dataset breast-cancer --out {tmp_path} --repetitions 2 --json"
    result = run_dppp(f"reproduce accuracy-epsilon {options}")
    assert result.returncode == 1
    assert not json.loads(result.stdout)["encrypted"][0]["agrees"]


@pytest.fixture
def made_up_files(monkeypatch):
    """Connections that are dealt and learned like the real ones."""
    few = lambda seed: made_up_connections(train=1_500, test=60, seed=seed)  # noqa: E731
    monkeypatch.setattr(company, "load_nsl_kdd", few)
    monkeypatch.setattr(learners, "load_nsl_kdd", few)


def test_votes_make_a_table_and_a_figure(tmp_path, made_up_files):
    found = json_of(f"reproduce votes --dataset nsl-kdd-20 --quick --out {tmp_path}")
    with (tmp_path / "votes.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {(row["teachers"], row["votes"]) for row in rows} == {("20", "1"), ("20", "10")}
    assert len(rows) == len(found["rows"])
    assert all(row["certified"] == "true" and row["splits"] == "1" for row in rows)
    assert (tmp_path / "votes.png").is_file()
    assert "one organisation alone" in found["shows"]


def test_a_quick_look_at_skew_is_at_company(tmp_path, made_up_files):
    found = json_of(f"reproduce skew --quick --out {tmp_path}")
    assert [made["command"] for made in found["artefacts"]] == ["company"]
    assert (tmp_path / "company.csv").is_file()
    assert (tmp_path / "company.png").is_file()
    assert not (tmp_path / "skew.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ("accuracy-epsilon --dataset iris --out OUT", "iris"),
        ("accuracy-delta --dataset breast-cancer --out OUT --repetitions 0", "repetitions"),
        ("skew --dataset breast-cancer --out OUT", "breast-cancer"),
        ("skew --by size --out OUT", "size"),
        ("skew --by company --dataset mnist --out OUT", "mnist"),
        ("skew --by labels --quick --out OUT", "no quick run"),
        ("votes --dataset breast-cancer --out OUT", "breast-cancer"),
        ("votes --splits 0 --out OUT", "splits"),
        ("overhead --out OUT --modulus-bits 100 --teachers 4", "100 bits"),
        ("accuracy-epsilon --dataset breast-cancer --out /dev/null/x", "/dev/null is not a folder"),
        ("accuracy-epsilon --out OUT", "--dataset"),
    ],
)
def test_what_cannot_be_reproduced_is_one_line_and_code_2(tmp_path, arguments, word):
    result = run_dppp(f"reproduce {arguments.replace('OUT', str(tmp_path))}")
    assert_refused(2, word, result)


def test_a_dataset_that_is_nowhere_says_where_to_put_it(tmp_path, monkeypatch):
    from dppp.experiments.datasets import nsl_kdd

    monkeypatch.setenv("DPPP_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("DPPP_CACHE", str(tmp_path / "cache"))
    gone = nsl_kdd._text_file("KDDTrain+_20Percent.txt", "0" * 64)
    object.__setattr__(gone, "homes", ("http://127.0.0.1:9/",))
    monkeypatch.setattr(nsl_kdd, "TWENTY_PERCENT", gone)
    result = run_dppp(f"reproduce accuracy-epsilon --dataset nsl-kdd-20 --out {tmp_path}")
    assert_refused(1, str(tmp_path / "data" / "nsl-kdd" / "KDDTrain+_20Percent.txt"), result)


def test_the_command_knows_the_datasets_and_defaults_of_the_experiments():
    assert command.DATASETS == ensembles.DATASETS
    assert tuple(skew.RECIPES) == command.SKEWED
    assert (command.TEACHERS, command.MODULUS_BITS) == (overhead.TEACHERS, overhead.MODULUS_BITS)
    assert tuple(against_votes.FEDERATIONS) == command.VOTED
    assert company.DATASET == command.COMPANY_DATASET
    assert command.SPLITS == against_votes.SPLITS == company.SPLITS
    assert (command.REPETITIONS, command.SEED) == (curves.REPETITIONS, curves.SEED)
