"""What a cross-validation cost: folds are trained on the same records, so their spending adds up.

Every fold is a federation with a budget of its own, and none knows of the others. A record is in
the training set of most folds; what was asked of all those is what was told about it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from dppp.errors import InputError
from dppp.privacy.accounting import account


def privacy_spent_over_folds(results: Mapping[str, Any]) -> dict[str, float]:
    """The cost of `cross_validate(…, return_estimator=True, return_indices=True)`.

    It is that of the record about which most was told: `folds` is how many of the federations had
    it, `queries` what these answered, and `epsilon` what all of that tells at the largest δ of
    them. Estimators inside a pipeline are found as its last step.
    """
    if "estimator" not in results or "indices" not in results:
        raise InputError(
            "the folds are not among the results",
            hint="call cross_validate with return_estimator=True and return_indices=True",
        )
    fitted = [_private(each) for each in results["estimator"]]
    answered = np.array([each.privacy_spent_["queries"] for each in fitted])
    delta = max(each.certificate_.promise.delta for each in fitted)
    members = _members(results["indices"]["train"])
    worst = {"folds": 0, "queries": 0, "epsilon": 0.0, "delta": delta}
    for member in np.unique(members & (answered > 0), axis=0):
        held = np.flatnonzero(member)
        spendings = [fitted[fold].certificate_.spending(int(answered[fold])) for fold in held]
        epsilon = account(spendings, delta) if spendings else 0.0
        if epsilon > worst["epsilon"]:
            worst = {
                "folds": len(held),
                "queries": int(answered[held].sum()),
                "epsilon": epsilon,
                "delta": delta,
            }
    return worst


def _members(train: Any) -> Any:
    """Whether each record (row) was in the training set of each fold (column)."""
    members = np.zeros((1 + max(int(np.max(each)) for each in train), len(train)), dtype=np.bool_)
    for fold, places in enumerate(train):
        members[places, fold] = True
    return members


def _private(estimator: BaseEstimator) -> Any:
    last = estimator.steps[-1][1] if hasattr(estimator, "steps") else estimator
    if not hasattr(last, "privacy_spent_"):
        raise InputError(
            f"{type(last).__name__} spends no privacy budget",
            hint="cross-validate a PrivateVotingClassifier",
        )
    return last
