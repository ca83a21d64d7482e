"""Blocks of Python outside README and usage run, with what their page takes as given."""

import re
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.svm import SVC
from tests.experiments.real_data import need_data

from dppp import PrivateVotingClassifier, StudentClassifier
from dppp.experiments.datasets.nsl_kdd import TWENTY_PERCENT

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
CHECKED = {
    "usage.md": "tests/test_readme.py",
    "student.md": "here",
    "operations.md": "here",
    "reproduction.md": "here, where the files of NSL-KDD are",
}


def blocks_of(page: str) -> list[str]:
    return BLOCK.findall((DOCS / page).read_text(encoding="utf-8"))


def test_it_is_known_of_every_page_who_runs_its_python() -> None:
    pages = {
        path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md") if blocks_of(str(path))
    }
    assert pages == set(CHECKED)


def test_the_block_about_students_runs() -> None:
    [block] = blocks_of("student.md")
    X, y = load_breast_cancer(return_X_y=True)  # noqa: N806
    given: dict[str, Any] = {
        "PrivateVotingClassifier": PrivateVotingClassifier,
        "StudentClassifier": StudentClassifier,
        "SVC": SVC,
        "X": X[200:],
        "y": y[200:],
        "X_public": X[:150],
        "anything": X[150:200],
    }
    exec(compile(block, "student.md", "exec"), given)  # noqa: S102 - our own text
    assert given["student"].predict(X[150:200]).shape == (50,)


def test_the_block_that_makes_a_hospitals_model_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [block] = blocks_of("operations.md")
    rows = [f"{r},{t},{'malignant' if r > 15 else 'benign'}" for r in range(10, 20) for t in (1, 2)]
    (tmp_path / "records.csv").write_text("\n".join(["radius,texture,class", *rows]))
    (tmp_path / "hospital-b").mkdir()
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "operations.md", "exec"), {})  # noqa: S102 - our own text
    assert (tmp_path / "hospital-b" / "model.skops").stat().st_size > 0


def test_the_block_that_makes_a_table_of_nsl_kdd_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_data(TWENTY_PERCENT)
    [block] = blocks_of("reproduction.md")
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "reproduction.md", "exec"), {})  # noqa: S102 - our own text
    header, *records = (tmp_path / "nsl.csv").read_text().splitlines()
    assert header.endswith(",class")
    assert len(records) == 25_192
