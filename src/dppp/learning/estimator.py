"""Private voting for those who know scikit-learn: fit, predict, and what it cost.

`fit` gives every teacher its records, deals them to its votes (learning/shards.py) and trains a
model for each; `predict` runs the real protocol (protocol/, federation.py) in this process and
spends the budget. Past it, it refuses.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, is_regressor
from sklearn.utils import _safe_indexing, check_random_state, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from dppp.errors import InputError, RecordsError
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
from dppp.learning.paying import choose_payable, share_right
from dppp.learning.tables import read_rows, read_training
from dppp.learning.verdict import Seen, Verdict
from dppp.privacy.ledger.summary import Summary
from dppp.protocol.question import CHOICE, Question, top_classes
from dppp.protocol.release import Release
from dppp.whole_numbers import require_whole


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
    max_labels : for an indicator matrix y, which it must come with: the most labels of one vote. A
        vote keeps those that its model is surest of. Choose it from public knowledge: noise grows
        with it, and worked out from the records it would tell of them.
    label_share : a label is released from this public share of the votes on.
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
        max_labels: int | None = None,
        label_share: float = 0.5,
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
        self.max_labels = max_labels
        self.label_share = label_share
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

        `y` holds a class for each record, or with `max_labels` is an indicator matrix: zeros and
        ones, a column for each label.
        `teachers` names the owner of each record; there must be n_teachers different ones.
        `persons` names whom each record is about: all records of a person are behind one vote.
        """
        require_parameters(self)
        require_unit(self, persons)
        warn_of_a_second_budget(self)
        table, labels = read_training(
            self, X, y, simple=self.estimator is None, accept_sparse=takes_sparse(self)
        )
        _require_classifier(self)
        _require_classes(labels)
        question = self._question_for(labels)
        self.classes_ = np.arange(labels.shape[1]) if labels.ndim == 2 else np.unique(labels)
        if len(self.classes_) < 2:
            raise RecordsError(
                f"the labels hold one class only, {self.classes_[0]!r}",
                hint="there is nothing to vote on: give records of at least two classes",
            )
        asked = Asked(question=question, names=tuple(self.classes_))
        random = check_random_state(self.random_state)
        trained = train_teachers(
            self, table, labels, asked, teachers=teachers, persons=persons, random=random
        )
        self.certificate_, self.votes_ = trained.certificate, trained.votes
        self.teachers_, self.shard_models_ = trained.alone, trained.shard_models
        self._trained, self._training = trained, trained.training
        self._table = trained.training.table
        self._question = question
        self._verdict: Verdict | None = None
        self._federation, self._ledger = found_federation(
            self, trained, random=random, abstain_below=self.abstain_below
        )
        warn_if_not_worth_it(trained.training, trained.voters, self.certificate_)
        return self

    def _question_for(self, labels: NDArray[Any]) -> Question:
        """One of the classes, or at most so many labels; only public numbers decide which."""
        if labels.ndim == 1:
            if self.max_labels is not None:
                raise RecordsError(
                    "max_labels is for several labels, and y has one class for each record",
                    hint="leave max_labels out, or give y as an indicator matrix",
                )
            return CHOICE
        if self.max_labels is None:
            raise RecordsError(
                f"y is an indicator matrix of {labels.shape[1]} labels, and nothing says how many "
                "of them a vote may have",
                hint="give max_labels=, for example 3, from public knowledge: the noise grows with "
                "it, and worked out from the records it would tell of them",
            )
        if self.abstain_below is not None:
            raise InputError(
                "abstain_below is for one of several classes: of labels, each is released or not",
                hint="leave it out, or raise label_share",
            )
        most = require_whole("max_labels", self.max_labels)
        return Question.of_labels(most_labels=most, share=self.label_share)

    def verdict(self, X: Any, y: ArrayLike) -> Verdict:  # noqa: N803
        """Whether private answers are worth having, from held-out records with their labels.

        With several labels its accuracies are shares of labels right (Jaccard: those that are both
        released and true, of those that are either), while `score` counts rows wholly right.

        This looks at every vote in the clear, which only a simulation in one process can do. It
        spends no budget and protects nobody: do not publish it of records that must stay private.
        """
        check_is_fitted(self)
        rows = self._table.rows_in_clear(read_rows(self, X, self._table))
        labels = self._labels_of(y, rows.shape[0])
        return self._training.judge(self._trained.voters, self.certificate_, rows, labels)

    def see_in_clear(self, X: Any, y: ArrayLike) -> Seen:  # noqa: N803
        """What a verdict is made of: every vote on held-out records, in the clear."""
        check_is_fitted(self)
        rows = self._table.rows_in_clear(read_rows(self, X, self._table))
        labels = self._labels_of(y, rows.shape[0])
        return self._training.look(self._trained.voters, rows, labels)

    @property
    def verdict_(self) -> Verdict:
        """The same from the training records, each without the vote of the model that saw it.

        Worked out at the first look.
        """
        check_is_fitted(self)
        if self._verdict is None:
            training = self._training
            self._verdict = training.judge_back(self._trained.voters, self.certificate_)
        return self._verdict

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """The label with the largest noisy count; None for an abstention. Spends the budget.

        With several labels an indicator matrix; where a count cannot be, a row of zeros.
        """
        return self._labels(ask_within_budget(self, X))

    def _labels(self, answers: Sequence[Release]) -> NDArray[Any]:
        if self._question.kind == "labels":
            found = np.zeros((len(answers), len(self.classes_)), dtype=np.int64)
            for row, answer in enumerate(answers):
                found[row, list(answer.labels or ())] = 1
            return found
        chosen = [answer.label for answer in answers]
        if None in chosen:
            return np.array(
                [None if each is None else self.classes_[each] for each in chosen], dtype=object
            )
        return np.asarray(self.classes_[np.array(chosen, dtype=np.int64)])

    def predict_top(self, X: Any, k: int = 3) -> NDArray[Any]:  # noqa: N803
        """The k classes or labels with the largest noisy counts, largest first, by row.

        The counts are released anyway, so this tells nothing more, and is free for rows that were
        predicted before. Equal counts are in the order of the classes.
        """
        check_is_fitted(self)
        if require_whole("k", k) > len(self.classes_):
            raise InputError(
                f"k is {k}, and there are {len(self.classes_)} classes", hint="lower k"
            )
        counts = self.predict_counts(X)
        places = [top_classes(of_row, k) for of_row in counts.tolist()]
        return np.asarray(self.classes_[np.array(places, dtype=np.int64).reshape(-1, k)])

    def _labels_of(self, y: ArrayLike, count: int) -> NDArray[Any]:
        """Labels of held-out records, in the shape of those of fit."""
        if self._question.kind != "labels":
            return column_of("y", y, count)
        labels: Any = y.toarray() if hasattr(y, "toarray") else np.asarray(y)
        if labels.shape != (count, len(self.classes_)):
            raise RecordsError(
                f"y must have a row for each of {count} records and a column for each of "
                f"{len(self.classes_)} labels; got the shape {labels.shape}",
                hint="give an indicator matrix like that of fit",
            )
        return np.asarray(labels, dtype=np.int64)

    @one_thread
    def score(
        self,
        X: Any,  # noqa: N803
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """The share of rows that get their label; an abstention is not right. Spends the budget.

        With several labels a row is right where all its labels are, as scikit-learn has it.
        Where the budget does not pay for every row, those that are free and as many others as it
        pays for, spread evenly, are scored, with a `PartlyScoredWarning`.
        """
        check_is_fitted(self)
        rows = read_rows(self, X, self._table)
        labels = self._labels_of(y, len(rows))
        weights = np.ones(len(rows))
        if sample_weight is not None:
            weights = column_of("sample_weight", sample_weight, len(rows))
        left = left_of(self._ledger)
        places = choose_payable(self._federation.unreleased(rows), left, self.queries)
        predicted = self._labels(self._federation.ask(_safe_indexing(rows, places)).answers)
        return share_right(predicted, labels[places], weights[places])

    def predict_counts(self, X: Any) -> NDArray[np.int64]:  # noqa: N803
        """The noisy counts, a column per class; free for inputs that were predicted before."""
        counts = [answer.counts for answer in ask_within_budget(self, X)]
        return np.array(counts, dtype=np.int64).reshape(len(counts), len(self.classes_))

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
        return ()  # scikit-learn would look at all, and `verdict_` is worked out at a look

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # noqa: N803 - scikit-learn's name
        text = str(super().__repr__(N_CHAR_MAX))
        return text if self.cryptography else f"{text}  # {SIMULATED}"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self)
        tags.classifier_tags.multi_label = self.max_labels is not None
        tags.input_tags.allow_nan = self.estimator is None or bool(
            get_tags(self.estimator).input_tags.allow_nan
        )
        return tags


def _require_classifier(private: Any) -> None:
    model = model_of(private, "choice")
    if is_regressor(model):
        raise InputError(
            f"the model of every teacher, {type(model).__name__}, is a regressor: it predicts "
            "numbers, not classes",
            hint="give a classifier, or take PrivateVotingRegressor",
        )


def _require_classes(labels: NDArray[Any]) -> None:
    try:
        check_classification_targets(labels)
    except ValueError as error:
        raise RecordsError(
            str(error).partition(". ")[0],
            hint="make classes of it, or take PrivateVotingRegressor where y is an amount",
        ) from error


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
