"""Teachers with an RBF SVM each, as the paper has them for NSL-KDD-20 and Breast Cancer.

The paper says nothing of preprocessing. Without any, an RBF SVM fails on these features (their
scales differ by nine orders of magnitude), so every teacher scales by its own records alone: a
scaler fitted on all records would have to be computed privately, and is not.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp.errors import InputError
from dppp.experiments.datasets.breast_cancer import BreastCancer
from dppp.experiments.datasets.files import Arrays
from dppp.experiments.datasets.nsl_kdd import Connections, Floats, Labels, NslKdd
from dppp.experiments.teachers.uneven_split import SkewRecipe

Margins = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class SvmRecipe:
    """How the teachers are trained; everything that the votes depend on besides the data."""

    teachers: int
    penalty: float
    seed: int = 1
    version: int = 1

    def __post_init__(self) -> None:
        if self.teachers < 1 or not self.penalty > 0:
            raise InputError(f"a recipe needs a teacher and a penalty above 0, got {self}")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SvmTeacher:
    """A model on scaled numbers; one class only where the records held no other."""

    model: Any
    only_class: int | None = None

    def cast(self, rows: Floats) -> tuple[Labels, Margins]:
        """Votes, and how far from undecided each is, in units of the SVM's margin.

        A teacher that has seen one class votes for it, and is never sure.
        """
        if self.only_class is not None:
            votes = np.full(len(rows), self.only_class, dtype=np.uint8)
            return votes, np.zeros(len(rows), dtype=np.float32)
        decision = self.model.decision_function(rows)
        return (decision > 0).astype(np.uint8), np.abs(decision).astype(np.float32)


def train_svm(rows: Floats, labels: Labels, penalty: float) -> SvmTeacher:
    """One teacher, alone with its records, in two classes 0 and 1."""
    if len(np.unique(labels)) < 2:
        return SvmTeacher(model=None, only_class=int(labels[0]))
    model = make_pipeline(StandardScaler(), SVC(C=penalty))
    return SvmTeacher(model=model.fit(rows, labels))


def split_equally(count: int, recipe: SvmRecipe) -> list[NDArray[np.int64]]:
    """The rows of each teacher: at random, nearly the same number each."""
    if count < recipe.teachers:
        raise InputError(f"{count} records are too few for {recipe.teachers} teachers")
    order = np.random.default_rng(recipe.seed).permutation(count)
    return np.array_split(order, recipe.teachers)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ConnectionReader:
    """One teacher's way from connections to numbers: the words it has met, logarithms."""

    words: tuple[NDArray[np.str_], ...]

    @classmethod
    def of(cls, own: Connections) -> "ConnectionReader":
        """Fitted on the teacher's own records; a word it never met is all zeros."""
        return cls(words=tuple(np.unique(column) for column in own.words.T))

    def read(self, connections: Connections) -> Floats:
        """One-hot words and the logarithm of 1 plus each number."""
        columns = zip(connections.words.T, self.words, strict=True)
        met = [column[:, None] == words[None, :] for column, words in columns]
        return np.hstack([*met, np.log1p(connections.numbers)]).astype(np.float64)


def cast_on_connections(
    own: Connections, tests: tuple[Connections, ...], penalty: float
) -> list[tuple[Labels, Margins]]:
    """Train one teacher on its own connections and let it vote on each of the tests."""
    reader = ConnectionReader.of(own)
    teacher = train_svm(reader.read(own), own.labels, penalty)
    return [teacher.cast(reader.read(test)) for test in tests]


def vote_on_nsl_kdd(data: NslKdd, recipe: SvmRecipe) -> Arrays:
    """Votes and centralised predictions on the split's test part and on the official test file."""
    tests = (data.test, data.official_test)
    slices = split_equally(len(data.train.labels), recipe)
    cast = [cast_on_connections(data.train.rows(own), tests, recipe.penalty) for own in slices]
    centralised = cast_on_connections(data.train, tests, recipe.penalty)
    found: Arrays = {}
    for place, name in enumerate(("split", "official")):
        found[f"votes_{name}"] = np.stack([each[place][0] for each in cast])
        found[f"centralised_{name}"] = centralised[place][0]
        found[f"truth_{name}"] = tests[place].labels
    return found


def vote_on_cancer(data: BreastCancer, recipe: SvmRecipe) -> Arrays:
    """Votes and centralised predictions on the third that is left out."""
    slices = split_equally(len(data.train_labels), recipe)
    models = [
        train_svm(data.train_rows[own], data.train_labels[own], recipe.penalty) for own in slices
    ]
    centralised = train_svm(data.train_rows, data.train_labels, recipe.penalty)
    return {
        "votes": np.stack([model.cast(data.test_rows)[0] for model in models]),
        "centralised": centralised.cast(data.test_rows)[0],
        "truth": data.test_labels,
    }


def vote_on_skewed_connections(data: NslKdd, recipe: SkewRecipe) -> Arrays:
    """Votes, margins and truth on the test part of the 80/20 split, from records dealt unevenly.

    How sure an SVM is, is its distance from undecided in units of its margin.
    """
    tests = (data.test.rows(np.arange(min(recipe.records, len(data.test.labels)))),)
    cast = [
        cast_on_connections(data.train.rows(own), tests, recipe.penalty)[0]
        for own in recipe.split(data.train.labels)
    ]
    return {
        "votes": np.stack([votes for votes, _ in cast]),
        "confidence": np.stack([margins for _, margins in cast]).astype(np.float16),
        "truth": tests[0].labels,
    }
