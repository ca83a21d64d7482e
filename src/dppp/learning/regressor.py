"""Private means for those who know scikit-learn: teachers predict a number together.

Like the classifier (estimator.py), but every vote is a number clipped to a public range, in even
steps, and the mean of the votes is released.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin, is_classifier
from sklearn.metrics import r2_score
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.validation import check_is_fitted

from dppp.errors import InputError
from dppp.learning.asked import Asked
from dppp.learning.budget import (
    SIMULATED,
    ask_within_budget,
    html_with_budget,
    left_of,
    require_no_copy,
    spent_of,
    warn_of_a_second_budget,
)
from dppp.learning.fitting import (
    column_of,
    found_federation,
    model_of,
    require_unit,
    takes_sparse,
    train_teachers,
)
from dppp.learning.judging import warn_if_not_worth_it
from dppp.learning.one_thread import one_thread
from dppp.learning.parameters import require_parameters
from dppp.learning.paying import choose_payable
from dppp.learning.tables import read_rows, read_training
from dppp.learning.verdict import Seen, Verdict
from dppp.privacy.ledger.summary import Summary
from dppp.privacy.pmf import Floats
from dppp.protocol.question import DEFAULT_LEVELS, Question
from dppp.protocol.release import Release
from dppp.whole_numbers import require_whole


class PrivateVotingRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Teachers with records of their own predict numbers together under one (ε, δ).

    A vote is clipped to the range and taken to the next of the even steps. A model that fails on a
    row votes for the middle of the range, which is public and so tells nothing.

    Parameters
    ----------
    estimator : the model that is trained for every vote, unfitted. When None, support vector
        regression of scaled numbers, or ridge regression where columns are mixed.
    low, high : the range of the number, which must be given. Take them from public knowledge (a
        dose, an age, a price list), never from the records: the smallest and the largest number
        among private records tell of those records. Noise grows with the range.
    levels : even steps in the range. More steps round less; noise is in proportion to them, so they
        do not change what it adds to the mean.
    n_teachers, epsilon, delta, queries, colluders, dropouts, noise, cryptosystem, cryptography,
    unit, random_state, n_jobs : as in `PrivateVotingClassifier`.
    votes : how many votes every teacher casts. "auto" works it out from public numbers: so many
        that noise adds 3 % of the range to the mean, but at least 30 records in a shard.

    Attributes
    ----------
    standard_error_ : what noise adds to every mean: its standard deviation, in the number's unit.
    teachers_, shard_models_, votes_, certificate_ : as in `PrivateVotingClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from dppp import PrivateVotingRegressor
    >>> rows = np.linspace(-1, 1, 1_200)[:, None]
    >>> private = PrivateVotingRegressor(
    ...     low=0, high=40, n_teachers=20, queries=10, cryptography=False, random_state=0
    ... ).fit(rows, 20 + 10 * rows[:, 0])
    >>> bool(abs(private.predict([[0.5]])[0] - 25) < 5 * private.standard_error_)
    True
    >>> private.privacy_spent_["queries"], private.privacy_spent_["left"]
    (1, 9)
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        low: float | None = None,
        high: float | None = None,
        levels: int = DEFAULT_LEVELS,
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
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.low = low
        self.high = high
        self.levels = levels
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
        require_unit(self, persons)
        asked = Asked(question=self._question(), names=("number",))
        _require_regressor(self)
        warn_of_a_second_budget(self)
        table, numbers = read_training(
            self,
            X,
            y,
            simple=self.estimator is None,
            accept_sparse=takes_sparse(self),
            is_numeric=True,
        )
        random = check_random_state(self.random_state)
        trained = train_teachers(
            self, table, numbers, asked, teachers=teachers, persons=persons, random=random
        )
        self.certificate_, self.votes_ = trained.certificate, trained.votes
        self.teachers_, self.shard_models_ = trained.alone, trained.shard_models
        self._trained, self._table = trained, trained.training.table
        noise = self.certificate_.noise.of_teachers(self.n_teachers)
        self.standard_error_ = asked.question.standard_error(noise.variance, self.votes_.total)
        self._verdict: Verdict | None = None
        self._federation, self._ledger = found_federation(self, trained, random=random)
        warn_if_not_worth_it(trained.training, trained.voters, self.certificate_)
        return self

    def _question(self) -> Question:
        if self.low is None or self.high is None:
            raise InputError(
                "the range of the number is not given: every vote is clipped to it",
                hint="give low= and high= from public knowledge, never from the records",
            )
        levels = require_whole("levels", self.levels)
        return Question.of_number(low=self.low, high=self.high, levels=levels)

    def predict(self, X: Any) -> Floats:  # noqa: N803
        """The noisy mean of all votes, clipped to the range. Spends the budget.

        Where a sum cannot be of votes and noise, the middle of the range.
        """
        return self._numbers(ask_within_budget(self, X))

    def predict_with_error(self, X: Any) -> tuple[Floats, Floats]:  # noqa: N803
        """The same, and what the noise adds to each: its standard deviation.

        That is not how far off a prediction is, which the models add to.
        """
        means = self.predict(X)
        return means, np.full(len(means), self.standard_error_)

    def _numbers(self, answers: Sequence[Release]) -> Floats:
        question = self._trained.training.asked.question
        middle = (question.low + question.high) / 2
        return np.array([middle if each.value is None else each.value for each in answers])

    def predict_counts(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The noisy sums of levels, in one column; free for inputs that were predicted before."""
        counts = [answer.counts for answer in ask_within_budget(self, X)]
        return np.array(counts, dtype=np.int64).reshape(len(counts), 1)

    @one_thread
    def score(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """R² of the private means. Spends the budget.

        Where the budget does not pay for every row, those that are free and as many others as it
        pays for, spread evenly, are scored, with a `PartlyScoredWarning`.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, self._table)
        numbers = column_of("y", y, len(rows))
        weights = np.ones(len(rows))
        if sample_weight is not None:
            weights = column_of("sample_weight", sample_weight, len(rows))
        left = left_of(self._ledger)
        places = choose_payable(self._federation.unreleased(rows), left, self.queries)
        said = self._numbers(self._federation.ask(_safe_indexing(rows, places)).answers)
        return float(r2_score(numbers[places], said, sample_weight=weights[places]))

    def verdict(self, X: Any, y: ArrayLike) -> Verdict:  # noqa: N803
        """Whether private means are worth having, from held-out records with their numbers.

        Its accuracies are parts of the squared error of always saying the training mean that are
        explained (R² beside that mean); `error_of` gives the root mean squared error.
        This looks at every vote in the clear, which only a simulation in one process can do. It
        spends no budget and protects nobody: do not publish it of records that must stay private.
        """
        check_is_fitted(self)
        rows = self._table.rows_in_clear(read_rows(self, X, self._table))
        numbers = np.asarray(column_of("y", y, rows.shape[0]), dtype=np.float64)
        return self._trained.training.judge(self._trained.voters, self.certificate_, rows, numbers)

    def see_in_clear(self, X: Any, y: ArrayLike) -> Seen:  # noqa: N803
        """What a verdict is made of: every vote on held-out records, in the clear."""
        check_is_fitted(self)
        rows = self._table.rows_in_clear(read_rows(self, X, self._table))
        labels = np.asarray(column_of("y", y, rows.shape[0]), dtype=np.float64)
        return self._trained.training.look(self._trained.voters, rows, labels)

    @property
    def verdict_(self) -> Verdict:
        """The same from the training records, each without the vote of the model that saw it.

        Worked out at the first look.
        """
        check_is_fitted(self)
        if self._verdict is None:
            training = self._trained.training
            self._verdict = training.judge_back(self._trained.voters, self.certificate_)
        return self._verdict

    @property
    def ledger_(self) -> Summary:
        """What was reserved and answered, from a teacher's own ledger."""
        check_is_fitted(self)
        return self._ledger.summary()

    @property
    def privacy_spent_(self) -> dict[str, float]:
        """Queries answered, and their ε at the promised δ."""
        check_is_fitted(self)
        return spent_of(self._ledger, self.certificate_)

    def __getstate__(self) -> dict[str, Any]:
        require_no_copy(self)
        state: dict[str, Any] = super().__getstate__()
        return state

    def _html_repr(self) -> str:
        return html_with_budget(self)

    def _get_fitted_attr_html(self, doc_link: str = "") -> tuple[()]:  # noqa: ARG002
        # scikit-learn would look at every attribute, and `verdict_` is worked out at a look.
        return ()

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 - scikit-learn's name
        text = str(super().__repr__(N_CHAR_MAX))
        return text if self.cryptography else f"{text}  # {SIMULATED}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self)
        tags.input_tags.allow_nan = self.estimator is None or bool(
            get_tags(self.estimator).input_tags.allow_nan
        )
        return tags


def _require_regressor(private: Any) -> None:
    model = model_of(private, "number")
    if is_classifier(model):
        raise InputError(
            f"the model of every teacher, {type(model).__name__}, is a classifier: it predicts "
            "classes, not numbers",
            hint="give a regressor, or take PrivateVotingClassifier",
        )


REGRESSORS_EXPECTED_FAILED_CHECKS = {
    "check_estimators_pickle": (
        "a fitted regressor holds key shares and a ledger; a copy of them would be a second "
        "budget for the same data, so it cannot be copied"
    ),
    "check_regressors_train": (
        "asks for an R² on a handful of records that noise sized for many queries does not leave "
        "to three teachers"
    ),
}
"""scikit-learn's checks that contradict a randomised predictor with a budget, with the reason."""
