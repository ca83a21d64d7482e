"""The estimator's parameters, checked by their own names before anything is trained.

numpy's numbers are taken like Python's. A grid search hands them in, and a refusal that speaks of a
certificate or a task would not say which parameter to change.
"""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dppp.errors import InputError
from dppp.privacy.divergence import require_delta, require_epsilon
from dppp.whole_numbers import require_whole


def require_parameters(private: Any) -> None:
    """Refuse parameters of a private estimator that cannot be meant."""
    require_epsilon(private.epsilon)
    require_delta(private.delta)
    require_whole("n_teachers", private.n_teachers, least=2)
    require_whole("queries", private.queries)
    for name in ("colluders", "dropouts", "abstain_below"):
        value = getattr(private, name, None)
        if value is not None:
            require_whole(name, value, least=0)
    if not isinstance(private.cryptography, bool | np.bool_):
        raise InputError(
            f"cryptography must be True or False, got {private.cryptography!r}",
            hint="False computes the same noisy sums without encryption, and protects nobody",
        )
    if private.cryptosystem not in ("masks", "paillier"):
        raise InputError(
            f"the cryptosystem is 'masks' or 'paillier', not {private.cryptosystem!r}",
            hint="leave it out: masks need no dealer",
        )
    _require_seed(private.random_state)
    _require_estimator(private.estimator)


def _require_seed(seed: Any) -> None:
    try:
        check_random_state(seed)
    except ValueError:
        raise InputError(
            f"random_state must be None, a whole number from 0 to 2³² - 1 or a RandomState, got "
            f"{seed!r}",
            hint="for example 0",
        ) from None


def _require_estimator(estimator: Any) -> None:
    if isinstance(estimator, type):
        raise InputError(
            f"estimator is the class {estimator.__name__} itself",
            hint=f"give one of it: {estimator.__name__}()",
        )
    missing = [name for name in ("fit", "predict", "get_params") if not hasattr(estimator, name)]
    if estimator is not None and missing:
        raise InputError(
            f"estimator must behave as those of scikit-learn do; {estimator!r} has no "
            f"{' and no '.join(missing)}",
            hint="leave it out, or give for example LogisticRegression() or Ridge()",
        )
