"""The budget of a fitted estimator: what is spent and left, asking within it, and never a copy."""

import warnings
from collections.abc import Sequence
from typing import Any

from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from dppp.errors import BudgetNotCopied, RecordsUsedAgainWarning
from dppp.learning.display import budget_html
from dppp.learning.one_thread import one_thread
from dppp.learning.paying import require_payable
from dppp.learning.tables import read_rows
from dppp.privacy.accounting import account
from dppp.privacy.certificate import Certificate
from dppp.privacy.ledger.ledger import Ledger
from dppp.protocol.release import Release

SIMULATED = "simulated: no encryption, every vote is visible to this process"


def spent_of(ledger: Ledger, certificate: Certificate) -> dict[str, float]:
    """Queries answered, and their ε at the promised δ."""
    task, promise = ledger.summary().data[0].tasks[0], certificate.promise
    spent = 0.0
    if task.answered:
        spent = min(promise.epsilon, account([certificate.spending(task.answered)], promise.delta))
    return {
        "queries": task.answered,
        "left": task.left,
        "epsilon": spent,
        "delta": promise.delta,
    }


def left_of(ledger: Ledger) -> int:
    """Queries that may still be asked."""
    return ledger.summary().data[0].tasks[0].left


@one_thread
def ask_within_budget(private: Any, X: Any) -> Sequence[Release]:  # noqa: N803
    """Releases of these rows; refused before any model runs where the budget does not pay."""
    check_is_fitted(private)
    rows = read_rows(private, X, private._table)
    federation, ledger = private._federation, private._ledger
    require_payable(federation.unreleased(rows), left_of(ledger), private.queries)
    answers: Sequence[Release] = federation.ask(rows).answers
    return answers


def warn_of_a_second_budget(private: Any) -> None:
    """Where an estimator is fitted again after answers."""
    if hasattr(private, "_ledger") and private.privacy_spent_["queries"]:
        spent = private.privacy_spent_
        warnings.warn(
            f"ε = {spent['epsilon']:.3g} was spent on {spent['queries']} answers before this "
            "fit, which begins a new budget: records that are used again have paid both",
            RecordsUsedAgainWarning,
            stacklevel=3,
        )


def require_no_copy(private: Any) -> None:
    """Refuse to pickle or copy a fitted estimator."""
    if hasattr(private, "_ledger"):
        raise BudgetNotCopied(
            f"a fitted {type(private).__name__} cannot be pickled or copied: the copy would "
            "spend the same budget once more",
            hint=(
                "keep it in this process, clone it to fit anew, or save a model that learned from "
                "its answers, such as a StudentClassifier"
            ),
        )


def html_with_budget(private: Any) -> str:
    """What a notebook shows."""
    spent = private.privacy_spent_ if hasattr(private, "_ledger") else None
    simulated = None if private.cryptography else SIMULATED
    return budget_html(private, spent, simulated) + str(estimator_html_repr(private))
