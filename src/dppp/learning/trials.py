"""One trial of each kind of question, for `dppp simulate`: who is asked, and how right answers are.

Classes and labels have accuracies. Numbers have errors in their own unit instead, root mean
squares, and R².
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.label_verdict import jaccard
from dppp.learning.regressor import PrivateVotingRegressor


def make_private(**parameters: Any) -> tuple[Any, str]:
    """An estimator for the question that these parameters are of, and its kind."""
    if "low" in parameters:
        return PrivateVotingRegressor(**parameters), "number"
    kind = "labels" if "max_labels" in parameters else "choice"
    return PrivateVotingClassifier(**parameters), kind


def compare_trial(
    kind: str,
    private: NDArray[Any],
    asked: NDArray[Any],
    *,
    centralised: Any,
    truth: NDArray[Any],
) -> dict[str, float]:
    """How right the private answers are, and those of one model of everybody's records."""
    if kind == "number":
        return {
            "error_private": _error(private, asked),
            "r2_private": float(r2_score(asked, private)) if len(asked) > 1 else 0.0,
            "error_centralised": _error(centralised, truth),
        }
    if kind == "labels":
        return {
            "accuracy_private": float(jaccard(private, asked).mean()),
            "subset_accuracy_private": float((private == asked).all(axis=1).mean()),
            "accuracy_centralised": float(jaccard(np.asarray(centralised), truth).mean()),
        }
    return {
        "accuracy_private": float(np.mean(private == asked)),
        "accuracy_centralised": float(np.mean(centralised == truth)),
    }


def name_answers(kind: str, private: NDArray[Any], names: Sequence[str]) -> list[str]:
    """Answers as a file has them; labels by their names, with semicolons between them."""
    if kind == "labels":
        return [";".join(names[place] for place in np.flatnonzero(row).tolist()) for row in private]
    return [str(each) for each in private.tolist()]


def _error(said: Any, truth: NDArray[Any]) -> float:
    return float(np.sqrt(np.mean((np.asarray(said) - truth) ** 2)))
