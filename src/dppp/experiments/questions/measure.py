"""How right several labels are, and how far off numbers, against ε.

Three sets, none of which is downloaded: labels and a number from scikit-learn's generators, and the
diabetes table that it ships (442 patients; few for a federation). Figures are averages over all
noise on held-out records, from the votes of models that were really trained.
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.datasets import load_diabetes, make_friedman1, make_multilabel_classification
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from dppp.errors import NotWorthItWarning
from dppp.experiments.accuracy.curves import SEED, OnProgress
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.label_verdict import jaccard
from dppp.learning.regressor import PrivateVotingRegressor
from dppp.learning.verdict import judge

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA, QUERIES = 1e-5, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A set of records, who holds them, and what is asked."""

    name: str
    teachers: int
    held_out: int
    load: Callable[[], tuple[Any, Any]]
    estimator: Any
    asked: dict[str, Any]

    @property
    def is_number(self) -> bool:
        """Else several labels."""
        return "low" in self.asked


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """One set at one ε: shares of labels right (Jaccard), or root mean squared errors."""

    dataset: str
    measure: str
    records: int
    teachers: int
    epsilon: float
    delta: float
    queries: int
    votes: int
    private: float
    in_clear: float
    always: float
    alone: float
    centralised: float


def settings(*, quick: bool = False) -> tuple[Setting, ...]:
    """Labels, a number of many records, a number of few; `quick` has a tenth of the records."""
    part = 10 if quick else 1
    return (
        Setting(
            name="made-up labels",
            teachers=20,
            held_out=1_000 // part,
            load=lambda: make_multilabel_classification(
                20_000 // part, 20, n_classes=8, n_labels=2, random_state=SEED
            ),
            estimator=make_pipeline(StandardScaler(), OneVsRestClassifier(LogisticRegression())),
            asked={"max_labels": 3},
        ),
        Setting(
            name="Friedman",
            teachers=20,
            held_out=1_000 // part,
            load=lambda: make_friedman1(20_000 // part, 10, noise=1.0, random_state=SEED),
            estimator=make_pipeline(StandardScaler(), PolynomialFeatures(2), Ridge()),
            asked={"low": 0.0, "high": 30.0},
        ),
        Setting(
            name="diabetes",
            teachers=5,
            held_out=142,
            load=lambda: load_diabetes(return_X_y=True),
            estimator=make_pipeline(StandardScaler(), Ridge()),
            asked={"low": 0.0, "high": 350.0},
        ),
    )


def measure_questions(
    *,
    epsilons: Sequence[float] = EPSILONS,
    seed: int = SEED,
    quick: bool = False,
    report: OnProgress = lambda *_: None,
) -> list[QuestionRow]:
    """Every set at every ε, with `votes="auto"`."""
    sets = settings(quick=quick)
    rows = []
    for place, setting in enumerate(sets):
        for step, epsilon in enumerate(epsilons):
            report(place * len(epsilons) + step, len(sets) * len(epsilons))
            rows.append(_measure(setting, epsilon, seed))
    report(len(rows), len(rows))
    return rows


def _measure(setting: Setting, epsilon: float, seed: int) -> QuestionRow:
    rows, labels = setting.load()
    order = np.random.default_rng(seed).permutation(len(rows))
    shown, kept = order[: setting.held_out], order[setting.held_out :]
    make: Any = PrivateVotingRegressor if setting.is_number else PrivateVotingClassifier
    private = make(
        setting.estimator,
        n_teachers=setting.teachers,
        epsilon=epsilon,
        delta=DELTA,
        queries=QUERIES,
        cryptography=False,
        random_state=seed,
        **setting.asked,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotWorthItWarning)  # it is in the row
        private.fit(rows[kept], labels[kept])
    seen = private.see_in_clear(rows[shown], labels[shown])
    verdict = judge(seen, private.certificate_)
    everybody = clone(setting.estimator).fit(rows[kept], labels[kept]).predict(rows[shown])
    found = {
        "private": verdict.accuracy_expected,
        "in_clear": verdict.accuracy_plurality,
        "always": verdict.accuracy_majority,
        "alone": verdict.accuracy_single,
    }
    if setting.is_number:
        found = {name: float(np.sqrt((1 - each) * seen.scale)) for name, each in found.items()}
        centralised = float(np.sqrt(np.mean((everybody - labels[shown]) ** 2)))
    else:
        centralised = float(jaccard(everybody, labels[shown]).mean())
    return QuestionRow(
        dataset=setting.name,
        measure="root mean squared error" if setting.is_number else "labels right",
        records=len(rows),
        teachers=setting.teachers,
        epsilon=epsilon,
        delta=DELTA,
        queries=QUERIES,
        votes=max(private.votes_.per_teacher),
        centralised=centralised,
        **found,
    )


def summarise_questions(rows: Sequence[QuestionRow]) -> str:
    """For people."""
    sentences = []
    for dataset in dict.fromkeys(row.dataset for row in rows):
        own = [row for row in rows if row.dataset == dataset]
        is_better = [
            row.private < row.always if "error" in row.measure else row.private > row.always
            for row in own
        ]
        first = next((row for row, better in zip(own, is_better, strict=True) if better), None)
        text = "at no ε measured" if first is None else f"from ε = {first.epsilon:g} on"
        sentences.append(f"{dataset}: better than saying the usual {text}")
    return "; ".join(sentences)
