"""Which rows the budget of a fitted estimator pays for, before any model is asked.

Rows come as what a federation would charge: a row's bytes, or None where it was answered before and
is free. The same row twice is charged once.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.errors import PartlyScoredWarning, QueriesExhausted

Charged = Sequence[bytes | None]


def require_payable(charged: Charged, left: int, queries: int) -> None:
    """Refuse rows that need more queries than are left."""
    new = len(set(charged) - {None})
    if new > left:
        raise QueriesExhausted(
            f"{new} {'row needs a query' if new == 1 else 'rows need a query each'}, and {left} "
            f"of queries={queries} {'is' if left == 1 else 'are'} left",
            hint=(
                "ask about fewer rows, or about rows that were answered before, which is free; or "
                "fit a new one with a larger queries=, whose answers have more noise"
            ),
        )


def choose_payable(charged: Charged, left: int, queries: int) -> NDArray[np.int64]:
    """Places of all rows; or, past the budget, of those that are free and some that it pays for."""
    new = list(dict.fromkeys(each for each in charged if each is not None))
    if len(new) > left:
        spread = np.linspace(0, len(new) - 1, left).astype(np.int64)
        paid = {new[place] for place in spread}
        chosen = [place for place, each in enumerate(charged) if each is None or each in paid]
        if not chosen:
            require_payable(charged, left, queries)
        warnings.warn(
            f"{len(new)} of {len(charged)} rows need a query each, and {left} of queries={queries} "
            f"are left: the score is of {len(chosen)} rows",
            PartlyScoredWarning,
            stacklevel=3,
        )
        return np.array(chosen, dtype=np.int64)
    return np.arange(len(charged))


def share_right(predicted: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any]) -> float:
    """How many answers are the label, or all the labels; None, an abstention, never is."""
    right = [
        answer is not None and bool(np.all(answer == label))
        for answer, label in zip(predicted, labels, strict=True)
    ]
    return float(np.average(right, weights=weights))
