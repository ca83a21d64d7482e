"""Private voting for those who know scikit-learn: fit, predict, and what it cost.

`fit` gives every teacher its records and trains one model for each; `predict` runs the real
protocol (protocol/, federation.py) in this process and spends the budget. Past it, it refuses.
"""

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, validate_data

from dppp.federation import Federation, create_federation, in_process
from dppp.learning.models import as_predict
from dppp.learning.simulated import SimulatedFederation
from dppp.privacy.accounting import Spending, account
from dppp.privacy.calibration import calibrate
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.summary import Summary
from dppp.protocol.release import Release
from dppp.randomness import RandomSource, expand_key, system_randomness

_SIMULATED = "simulated: no encryption, every vote is visible to this process"


class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Teachers with records of their own answer queries together under one (ε, δ).

    Parameters
    ----------
    estimator : the model that every teacher trains on its own records; an RBF SVC when None.
    n_teachers : how many teachers there are.
    epsilon, delta : the promise for all queries together.
    queries : how many inputs may be asked in all; the same input again is free.
    colluders, dropouts : who may misbehave; by default n_teachers // 5 (at least 1) and // 10.
    noise : "auto", "skellam", "polya", "binomial" or "discrete-gaussian".
    cryptosystem : "masks", which needs no dealer, or "paillier", the paper's.
    cryptography : False computes the same noisy sums without encryption, for fast experiments.
    abstain_below : answer None where the largest noisy count is below this.
    random_state : governs the split and the models; noise only when cryptography is False.
    n_jobs : processes for training.

    Examples
    --------
    >>> import numpy as np
    >>> from dppp import PrivateVotingClassifier
    >>> rows = np.linspace(-1, 1, 400)[:, None]
    >>> private = PrivateVotingClassifier(
    ...     n_teachers=20, queries=10, cryptography=False, random_state=0
    ... ).fit(rows, np.where(rows[:, 0] > 0, "right", "left"))
    >>> private.predict([[-0.9], [0.9]]).tolist()
    ['left', 'right']
    >>> private.privacy_spent_["queries"], private.privacy_spent_["left"]
    (2, 8)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        n_teachers: int = 20,
        epsilon: float = 8.0,
        delta: float = 1e-5,
        queries: int = 100,
        colluders: int | None = None,
        dropouts: int | None = None,
        noise: str = "auto",
        cryptosystem: str = "masks",
        cryptography: bool = True,
        abstain_below: int | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.n_teachers = n_teachers
        self.epsilon = epsilon
        self.delta = delta
        self.queries = queries
        self.colluders = colluders
        self.dropouts = dropouts
        self.noise = noise
        self.cryptosystem = cryptosystem
        self.cryptography = cryptography
        self.abstain_below = abstain_below
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(self, X: ArrayLike, y: ArrayLike, teachers: ArrayLike | None = None) -> Self:  # noqa: N803
        """Train every teacher on its records: dealt at random, or those that `teachers` says.

        `teachers` names the owner of each record; there must be n_teachers different ones.
        """
        rows, labels = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(labels)
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise ValueError(
                f"the labels hold one class only, {self.classes_[0]!r}; there is nothing to vote on"
            )
        certificate = calibrate(
            self.noise,
            epsilon=self.epsilon,
            delta=self.delta,
            teachers=self.n_teachers,
            colluders=self.colluders,
            dropouts=self.dropouts,
            queries=self.queries,
            classes=len(self.classes_),
        )
        self.certificate_ = replace(certificate, is_simulated=not self.cryptography)
        random = check_random_state(self.random_state)
        owners = self._owners(len(rows), teachers, random)
        seeds = random.randint(2**31 - 1, size=self.n_teachers)
        self.teachers_ = tuple(
            Parallel(n_jobs=self.n_jobs)(
                delayed(train_teacher)(
                    self._model(), rows[owners == place], labels[owners == place], int(seed)
                )
                for place, seed in enumerate(seeds)
            )
        )
        self._found(random)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The label with the largest noisy count; None for an abstention. Spends the budget."""
        chosen = [answer.label for answer in self._ask(X)]
        if None in chosen:
            return np.array(
                [None if each is None else self.classes_[each] for each in chosen], dtype=object
            )
        return np.asarray(self.classes_[np.array(chosen, dtype=np.int64)])

    def predict_counts(self, X: ArrayLike) -> NDArray[np.int64]:  # noqa: N803
        """The noisy counts, a column per class; free for inputs that were predicted before."""
        counts = [answer.counts for answer in self._ask(X)]
        return np.array(counts, dtype=np.int64).reshape(len(counts), len(self.classes_))

    @property
    def ledger_(self) -> Summary:
        """What was reserved and answered, from a teacher's own ledger."""
        check_is_fitted(self)
        return self._ledger.summary()

    @property
    def privacy_spent_(self) -> dict[str, float]:
        """Queries answered, and their ε at the promised δ."""
        task = self.ledger_.data[0].tasks[0]
        spent = 0.0
        if task.answered:
            spending = Spending(noise=self.certificate_.noise, queries=task.answered)
            spent = min(self.epsilon, account([spending], self.delta))
        return {"queries": task.answered, "left": task.left, "epsilon": spent, "delta": self.delta}

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 - scikit-learn's name
        text = str(super().__repr__(N_CHAR_MAX))
        return text if self.cryptography else f"{text}  # {_SIMULATED}"

    def _model(self) -> Any:
        return SVC() if self.estimator is None else clone(self.estimator)

    def _owners(self, count: int, teachers: ArrayLike | None, random: Any) -> NDArray[np.int64]:
        """The teacher of each record, as a number from 0."""
        if teachers is None:
            if count < self.n_teachers:
                raise ValueError(
                    f"{count} records (n_samples = {count}) are fewer than {self.n_teachers} "
                    "teachers; every teacher needs one"
                )
            return np.asarray(random.permutation(np.arange(count) % self.n_teachers))
        names, owners = np.unique(np.asarray(teachers), return_inverse=True)
        if len(owners) != count or len(names) != self.n_teachers:
            raise ValueError(
                f"teachers must name the owner of each of {count} records, {self.n_teachers} "
                f"different ones; got {len(owners)} names, {len(names)} different"
            )
        return np.asarray(owners)

    def _found(self, random: Any) -> None:
        models = [as_predict(model, list(self.classes_)) for model in self.teachers_]
        self._federation: Federation | SimulatedFederation
        self._ledger: Ledger
        if not self.cryptography:
            self._federation = SimulatedFederation(
                certificate=self.certificate_,
                models=models,
                features=self.n_features_in_,
                randomness=self._simulated_randomness(random),
                abstain_below=self.abstain_below,
            )
            self._ledger = self._federation.ledger
            return
        parties = create_federation(
            name="estimator",
            class_names=[f"class {place}" for place in range(len(self.classes_))],
            features=[f"feature {place}" for place in range(self.n_features_in_)],
            certificate=self.certificate_,
            models=models,
            cryptosystem=self.cryptosystem,
            abstain_below=self.abstain_below,
        )
        self._federation = Federation(
            aggregator=parties.aggregator, deliver=in_process(parties.teachers)
        )
        self._ledger = parties.ledgers[1]

    def _simulated_randomness(self, random: Any) -> RandomSource:
        """Noise that a seed repeats: only where nobody is protected anyway."""
        if self.random_state is None:
            return system_randomness
        key = hashlib.sha256(random.bytes(32)).digest()
        calls = itertools.count()

        def draw(count: int) -> bytes:
            place = next(calls).to_bytes(8, "big")
            return expand_key(hashlib.sha256(key + place).digest(), count)

        return draw

    def _ask(self, X: ArrayLike) -> Sequence[Release]:  # noqa: N803
        check_is_fitted(self)
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        return self._federation.ask(rows).answers


def train_teacher(model: Any, rows: NDArray[np.float64], labels: NDArray[Any], seed: int) -> Any:
    """One teacher's model; a teacher that has seen one class only always says that class."""
    if len(np.unique(labels)) < 2:
        return DummyClassifier(strategy="most_frequent").fit(rows, labels)
    if "random_state" in model.get_params():
        model.set_params(random_state=seed)
    return model.fit(rows, labels)


EXPECTED_FAILED_CHECKS = {
    "check_estimators_pickle": (
        "a fitted classifier holds key shares and a ledger; a copy of them would be a second "
        "budget for the same data, so it cannot be copied"
    ),
    "check_classifiers_train": (
        "asks for an accuracy on a handful of records that noise sized for many queries does not "
        "leave to three teachers"
    ),
}
"""scikit-learn's checks that contradict a randomised predictor with a budget, with the reason."""
