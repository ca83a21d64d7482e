"""Private voting for those who know scikit-learn: fit, predict, and what it cost.

`fit` gives every teacher its records, deals them to its votes (learning/shards.py) and trains a
model for each; `predict` runs the real protocol (protocol/, federation.py) in this process and
spends the budget. Past it, it refuses.
"""

import hashlib
import itertools
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_regressor
from sklearn.utils import _safe_indexing, check_random_state, estimator_html_repr, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dppp.errors import BudgetNotCopied, InputError, RecordsError, RecordsUsedAgainWarning
from dppp.federation import Federation, create_federation, in_process
from dppp.learning.choosing_votes import choose_votes
from dppp.learning.default_model import default_model
from dppp.learning.display import budget_html
from dppp.learning.judging import Training, warn_if_not_worth_it
from dppp.learning.one_thread import one_thread
from dppp.learning.parameters import require_parameters
from dppp.learning.paying import choose_payable, require_payable, share_right
from dppp.learning.shards import require_unfitted
from dppp.learning.simulated import SimulatedFederation
from dppp.learning.tables import read_rows, read_training
from dppp.learning.teachers_records import TeachersRecords
from dppp.learning.verdict import Verdict
from dppp.privacy.accounting import account
from dppp.privacy.calibration import calibrate
from dppp.privacy.ledger.ledger import Ledger
from dppp.privacy.ledger.summary import Summary
from dppp.protocol.columns import Column
from dppp.protocol.release import Release
from dppp.protocol.units import UNITS
from dppp.protocol.votes import Predict
from dppp.randomness import RandomSource, expand_key, system_randomness

_SIMULATED = "simulated: no encryption, every vote is visible to this process"


class PrivateVotingClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Teachers with records of their own answer queries together under one (ε, δ).

    Parameters
    ----------
    estimator : the model that is trained for every vote, unfitted. When None, one that scales
        numbers, fills in what is missing and turns texts into numbers (default_model.py).
        A DataFrame reaches it as one, so a ColumnTransformer may be in it; each vote fits its own.
    n_teachers : how many teachers there are.
    epsilon, delta : the promise for all queries together.
    queries : how many inputs may be asked in all; the same input again is free.
    colluders, dropouts : who may misbehave; by default n_teachers // 5 (at least 1) and // 10.
    noise : "auto", "skellam", "polya", "binomial" or "discrete-gaussian".
    cryptosystem : "masks", which needs no dealer, or "paillier", the paper's.
    cryptography : False computes the same noisy sums without encryption, for fast experiments.
    votes : how many votes every teacher casts, each by a model of its own shard of the records.
        "auto" works it out from public numbers: noise, teachers, classes, records of each teacher.
    unit : whose change the promise covers: "record", "person" (`fit` needs `persons`), or
        "teacher", all that a teacher has, which leaves it one vote.
    abstain_below : a whole number; answer None where the largest noisy count is below this.
    random_state : governs the split and the models; noise only when cryptography is False.
    n_jobs : processes for training, each on one thread.

    Attributes
    ----------
    teachers_ : for each teacher, the model of all its records: what it has without the others. It
        votes only where its teacher has one vote.
    shard_models_ : for each teacher, the models that vote, one per shard.
    votes_ : how many votes each teacher casts (`per_teacher`), and why (`reason`).
    certificate_ : what the noise delivers; the promise is for one `unit`. It also says how many
        votes there are and why.

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
        votes: int | str = "auto",
        unit: str = "record",
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
        self.votes = votes
        self.unit = unit
        self.abstain_below = abstain_below
        self.random_state = random_state
        self.n_jobs = n_jobs

    def fit(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        teachers: ArrayLike | None = None,
        persons: ArrayLike | None = None,
    ) -> Self:
        """Train every teacher on its records: dealt at random, or those that `teachers` says.

        `teachers` names the owner of each record; there must be n_teachers different ones.
        `persons` names whom each record is about: all records of a person are behind one vote.
        """
        require_parameters(self)
        self._require_unit(persons)
        self._warn_of_a_second_budget()
        self._table, labels = read_training(
            self, X, y, simple=self.estimator is None, accept_sparse=self._takes_sparse()
        )
        rows = self._table.rows
        check_classification_targets(labels)
        if is_regressor(self._model()):
            raise InputError(
                f"the model of every teacher, {type(self._model()).__name__}, is a regressor: it "
                "predicts numbers, not classes",
                hint="give a classifier",
            )
        self.classes_ = np.unique(labels)
        if len(self.classes_) < 2:
            raise RecordsError(
                f"the labels hold one class only, {self.classes_[0]!r}",
                hint="there is nothing to vote on: give records of at least two classes",
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
        people = None if persons is None else _column("persons", persons, len(labels))
        owners = self._owners(len(labels), teachers, people, random)
        self._train(rows, labels, owners, people, random)
        self._verdict: Verdict | None = None
        self._found(random)
        warn_if_not_worth_it(self._training, self._voters(), self.certificate_)
        return self

    def verdict(self, X: Any, y: ArrayLike) -> Verdict:  # noqa: N803
        """Whether private answers are worth having, from held-out records with their labels.

        This looks at every vote in the clear, which only a simulation in one process can do. It
        spends no budget and protects nobody: do not publish it of records that must stay private.
        """
        check_is_fitted(self)
        rows = self._table.rows_in_clear(read_rows(self, X, self._table))
        labels = _column("y", y, rows.shape[0])
        return self._training.judge(self._voters(), self.certificate_, rows, labels)

    @property
    def verdict_(self) -> Verdict:
        """The same from the training records, each without the vote of the model that saw it.

        Worked out at the first look.
        """
        check_is_fitted(self)
        if self._verdict is None:
            self._verdict = self._training.judge_back(self._voters(), self.certificate_)
        return self._verdict

    def _voters(self) -> list[list[Predict]]:
        """The models of every teacher."""
        return self._training.predicts(self.shard_models_)

    def _train(
        self,
        rows: Any,
        labels: NDArray[Any],
        owners: NDArray[np.int64],
        persons: NDArray[Any] | None,
        random: Any,
    ) -> None:
        """Models of all shards, and one of all records of each teacher with several shards."""
        require_unfitted(self._model())
        records = TeachersRecords(
            estimator=self._model(),
            rows=rows,
            labels=labels,
            owners=owners,
            persons=persons,
            seeds=tuple(random.randint(2**31 - 1, size=self.n_teachers).tolist()),
            n_jobs=self.n_jobs,
        )
        self.votes_ = choose_votes(
            self.votes,
            unit=self.unit,
            noise=self.certificate_.noise,
            records=records.sizes,
            classes=len(self.classes_),
        )
        self.certificate_ = replace(
            self.certificate_,
            unit=self.unit,
            votes=self.votes_.per_teacher,
            votes_reason=self.votes_.reason,
        )
        self.teachers_ = records.train_alone()
        voting = records.train_votes(self.votes_.per_teacher, self.teachers_)
        self.shard_models_ = voting.models
        training = Training(
            table=self._table,
            records=records,
            places=voting.places,
            classes=tuple(self.classes_),
            alone=self.teachers_,
            votes=self.votes_.per_teacher,
            can_split=self.unit != "teacher",
        )
        training.require_voters(self.shard_models_)
        self._table = self._table.allowing_missing(self.teachers_, list(self.classes_))
        self._training = replace(training, table=self._table)

    def _require_unit(self, persons: ArrayLike | None) -> None:
        if self.unit not in UNITS:
            raise RecordsError(
                f"unknown unit {self.unit!r}", hint=f"choose one of {', '.join(UNITS)}"
            )
        if self.unit == "person" and persons is None:
            raise RecordsError(
                "unit is 'person', and nothing says whom the records are about",
                hint="give fit persons=, a name for each record",
            )

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The label with the largest noisy count; None for an abstention. Spends the budget."""
        return self._labels(self._ask(X))

    def _labels(self, answers: Sequence[Release]) -> NDArray[Any]:
        chosen = [answer.label for answer in answers]
        if None in chosen:
            return np.array(
                [None if each is None else self.classes_[each] for each in chosen], dtype=object
            )
        return np.asarray(self.classes_[np.array(chosen, dtype=np.int64)])

    @one_thread
    def score(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The share of rows that get their label; an abstention is not right. Spends the budget.

        Where the budget does not pay for every row, those that are free and as many others as it
        pays for, spread evenly, are scored, with a `PartlyScoredWarning`.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, self._table)
        labels = _column("y", y, len(rows))
        weights = np.ones(len(rows))
        if sample_weight is not None:
            weights = _column("sample_weight", sample_weight, len(rows))
        places = choose_payable(self._federation.unreleased(rows), self._left(), self.queries)
        predicted = self._labels(self._federation.ask(_safe_indexing(rows, places)).answers)
        return share_right(predicted, labels[places], weights[places])

    def predict_counts(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
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
        task, promise = self.ledger_.data[0].tasks[0], self.certificate_.promise
        spent = 0.0
        if task.answered:
            spending = self.certificate_.spending(task.answered)
            spent = min(promise.epsilon, account([spending], promise.delta))
        return {
            "queries": task.answered,
            "left": task.left,
            "epsilon": spent,
            "delta": promise.delta,
        }

    def _left(self) -> int:
        return self._ledger.summary().data[0].tasks[0].left

    def _warn_of_a_second_budget(self) -> None:
        if hasattr(self, "_ledger") and self.privacy_spent_["queries"]:
            spent = self.privacy_spent_
            warnings.warn(
                f"ε = {spent['epsilon']:.3g} was spent on {spent['queries']} answers before this "
                "fit, which begins a new budget: records that are used again have paid both",
                RecordsUsedAgainWarning,
                stacklevel=3,
            )

    def __getstate__(self) -> dict[str, Any]:
        if hasattr(self, "_ledger"):
            raise BudgetNotCopied(
                "a fitted PrivateVotingClassifier cannot be pickled or copied: the copy would "
                "spend the same budget once more",
                hint=(
                    "keep it in this process, clone it to fit anew, or save a StudentClassifier "
                    "that learned from it"
                ),
            )
        state: dict[str, Any] = super().__getstate__()
        return state

    def _html_repr(self) -> str:
        spent = self.privacy_spent_ if hasattr(self, "_ledger") else None
        simulated = None if self.cryptography else _SIMULATED
        return budget_html(self, spent, simulated) + str(estimator_html_repr(self))

    def _get_fitted_attr_html(self, doc_link: str = "") -> tuple[()]:  # noqa: ARG002
        return ()  # scikit-learn would look at all, and `verdict_` is worked out at a look

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 - scikit-learn's name
        text = str(super().__repr__(N_CHAR_MAX))
        return text if self.cryptography else f"{text}  # {_SIMULATED}"

    def _model(self) -> Any:
        """A fresh model, for rows like those of the table if nobody gave one."""
        if self.estimator is not None:
            return clone(self.estimator)
        return default_model(self._table.rows if hasattr(self, "_table") else None)

    def _takes_sparse(self) -> bool:
        return self.estimator is None or bool(get_tags(self.estimator).input_tags.sparse)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse()
        tags.input_tags.allow_nan = self.estimator is None or bool(
            get_tags(self.estimator).input_tags.allow_nan
        )
        return tags

    def _owners(
        self,
        count: int,
        teachers: ArrayLike | None,
        persons: NDArray[Any] | None,
        random: Any,
    ) -> NDArray[np.int64]:
        """The teacher of each record, as a number from 0."""
        if teachers is None and persons is not None:
            people, of_record = np.unique(persons, return_inverse=True)
            return self._owners(len(people), None, None, random)[of_record]
        if teachers is None:
            if count < self.n_teachers:
                raise RecordsError(
                    f"{count} records (n_samples = {count}) are fewer than {self.n_teachers} "
                    "teachers",
                    hint="every teacher needs a record: lower n_teachers, or give more records",
                )
            return np.asarray(random.permutation(np.arange(count) % self.n_teachers))
        names, owners = np.unique(np.asarray(teachers), return_inverse=True)
        if len(owners) != count or len(names) != self.n_teachers:
            raise RecordsError(
                f"teachers must name the owner of each of {count} records, {self.n_teachers} "
                f"different ones; got {len(owners)} names, {len(names)} different",
                hint="set n_teachers to the number of owners",
            )
        if self.unit == "person" and persons is not None:
            _require_one_teacher(persons, owners)
        return np.asarray(owners)

    def _found(self, random: Any) -> None:
        models = self._voters()
        self._federation: Federation | SimulatedFederation
        self._ledger: Ledger
        if not self.cryptography:
            self._federation = SimulatedFederation(
                certificate=self.certificate_,
                models=models,
                columns=self._table.columns,
                randomness=self._simulated_randomness(random),
                abstain_below=self.abstain_below,
            )
            self._ledger = self._federation.ledger
            return
        parties = create_federation(
            name="estimator",
            class_names=[f"class {place}" for place in range(len(self.classes_))],
            features=self._features(),
            certificate=self.certificate_,
            models=models,
            cryptosystem=self.cryptosystem,
            abstain_below=self.abstain_below,
            unit=self.unit,
        )
        self._federation = Federation(
            aggregator=parties.aggregator, deliver=in_process(parties.teachers)
        )
        self._ledger = parties.ledgers[1]

    def _features(self) -> Sequence[str | Column]:
        columns = self._table.columns
        if not isinstance(columns, int):
            return columns
        return [f"feature {place}" for place in range(columns)]

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

    @one_thread
    def _ask(self, X: Any) -> Sequence[Release]:  # noqa: N803
        check_is_fitted(self)
        rows = read_rows(self, X, self._table)
        require_payable(self._federation.unreleased(rows), self._left(), self.queries)
        return self._federation.ask(rows).answers


def _column(what: str, values: ArrayLike, count: int) -> NDArray[Any]:
    column = np.asarray(values)
    if column.shape != (count,):
        raise RecordsError(
            f"{what} must be one for each of {count} records; got the shape {column.shape}",
            hint="give a list as long as X",
        )
    return column


def _require_one_teacher(persons: NDArray[Any], owners: NDArray[np.int64]) -> None:
    """A person at two teachers is behind two votes, and the promise is for one."""
    pairs = {(str(person), int(owner)) for person, owner in zip(persons, owners, strict=True)}
    people = {person for person, _ in pairs}
    if len(pairs) > len(people):
        raise RecordsError(
            f"{len(pairs) - len(people)} times a person has records at another teacher as well, "
            "and would move a vote of each",
            hint="unit 'person' needs every person at one teacher",
        )


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
