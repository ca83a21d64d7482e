"""A student: spend the budget on a few labels of public records, then answer for free.

The querier runs this. It has public records without labels and may ask the teachers about some,
chosen from the public pool alone. What they answer is carried to the whole pool
(label_spreading.py), and any scikit-learn estimator learns from that. All of it is post-processing
of what the teachers released: the student answers without limit at no further cost.
"""

import copy
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from dppp.errors import InputError
from dppp.federation import Federation
from dppp.learning.label_spreading import (
    Floats,
    Spreading,
    choose_records,
    influence,
    neighbour_graph,
    spread_labels,
)
from dppp.learning.public_features import PublicFeatures
from dppp.learning.seeds import seed_every_part
from dppp.whole_numbers import require_whole

Answers = Sequence[object] | NDArray[Any]
"""A label for each record, None for an abstention; or a row of noisy counts for each."""
Teachers = Any
"""A fitted classifier, a `Federation`, or a function from records to `Answers`."""


def evidence_from_answers(
    answers: Answers, classes: NDArray[Any], asked: int
) -> tuple[NDArray[np.bool_], Floats]:
    """Which rows were answered, and a row of class weights for each of those.

    Counts are centred, so that noise common to all classes does not travel; they stay linear, so
    that independent noise averages out on the way.
    """
    if len(answers) != asked:
        raise InputError(
            f"asked about {asked} records but got {len(answers)} answers",
            hint="teachers must answer every record, with None for an abstention",
        )
    if isinstance(answers, np.ndarray) and answers.ndim == 2:
        if answers.shape[1] != len(classes):
            raise InputError(
                f"counts have {answers.shape[1]} columns for {len(classes)} classes",
                hint="give one column per class, in the order of `classes`",
            )
        counts = answers.astype(np.float64)
        counts -= counts.mean(axis=1, keepdims=True)
        return np.ones(asked, dtype=np.bool_), counts / max(np.abs(counts).max(), 1e-300)
    answered = np.array([answer is not None for answer in answers], dtype=np.bool_)
    labels = [answer for answer in answers if answer is not None]
    unknown = set(labels) - set(classes.tolist())
    if unknown:
        raise InputError(
            f"answers outside the classes: {', '.join(sorted(map(repr, unknown)))}",
            hint="name all classes that teachers may answer with",
        )
    position = {label: number for number, label in enumerate(classes.tolist())}
    evidence = np.zeros((len(labels), len(classes)))
    evidence[np.arange(len(labels)), [position[label] for label in labels]] = 1
    return answered, evidence


class StudentClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Asks for `labels` private labels of public records, and learns from them and the rest.

    Parameters
    ----------
    teachers : who is asked, once, in `fit`, and never by `predict`: a fitted
        `PrivateVotingClassifier`; a `Federation`; or any function from records to labels (None for
        an abstention) or to noisy counts. The first two give their noisy counts, which are released
        anyway, and carry more than the label where noise is large.
    labels : how many records to ask about; each is charged as one query.
    classes : the classes, in the order of counts. By default as the teachers name them; a function
        cannot, so with one they must be given.
    estimator : what learns from the spread labels; it gets the records as they are. When None, an
        SVM on the features.
    features : how records are compared. "learned" (the default) learns it from the public pool
        without labels (`public_features.py`); "given" takes the columns as they are; or any
        transformer of scikit-learn, which a clone of is fitted on the pool.
    spreading : how the answers travel through the pool.
    random_state : governs the choice of records, and what the estimator draws. With a fixed one a
        second `fit` asks about the same records, which is free; otherwise it asks about others, and
        they are charged.

    Attributes
    ----------
    asked_, answered_ : rows of the pool that were asked about, and those without abstention.
    private_labels_ : what the teachers said of `answered_`.
    spread_ : a class number and a confidence for every record of the pool.
    features_ : the fitted transformer; None with "given", or where `fit` got `graph_features`.
    estimator_ : the student itself.

    A clone has the same teachers, not a copy: they are not unfitted, and there is only one budget.
    A fitted student is pickled and copied without its teachers: it needs them no more.

    Examples
    --------
    >>> import numpy as np
    >>> from dppp import StudentClassifier
    >>> public = np.concatenate([np.linspace(-2, -1, 50), np.linspace(1, 2, 50)])[:, None]
    >>> def ask(rows):  # or a fitted PrivateVotingClassifier, or a Federation
    ...     return ["right" if row[0] > 0 else "left" for row in rows]
    >>> student = StudentClassifier(ask, labels=10, classes=["left", "right"], random_state=0)
    >>> student.fit(public).predict([[-1.5], [1.5]]).tolist()
    ['left', 'right']
    """

    def __init__(
        self,
        teachers: Teachers,
        *,
        labels: int = 100,
        classes: Sequence[object] | None = None,
        estimator: Any = None,
        features: Any = "learned",
        spreading: Spreading | None = None,
        random_state: int | None = None,
    ) -> None:
        self.teachers = teachers
        self.labels = labels
        self.classes = classes
        self.estimator = estimator
        self.features = features
        self.spreading = spreading
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: None = None, *, graph_features: ArrayLike | None = None) -> Self:  # noqa: N803
        """Choose, ask, spread, learn. X is the public pool; labels are never taken from outside.

        Records are compared and chosen by `graph_features`, if given, and else by `features`.
        """
        if y is not None:
            raise InputError("a student takes no labels from outside", hint="leave y out")
        pool: NDArray[Any] = validate_data(self, X)
        self.features_ = None if graph_features is not None else self._fit_features(pool)
        features = self._features_of(pool, graph_features)
        if len(features) != len(pool):
            raise InputError(
                f"{len(features)} rows of graph_features for {len(pool)} records",
                hint="give one row for each record",
            )
        if self.teachers is None:
            raise InputError(
                "this student has no teachers: it was saved without them",
                hint="predict with it as it is, or set_params(teachers=…) to learn again",
            )
        self.classes_ = self._classes()
        (self.spreading or Spreading()).require_classes(len(self.classes_))
        self.asked_ = choose_records(
            features, require_whole("labels", self.labels), seed=self.random_state
        )
        answers, said = self._ask(pool[self.asked_])
        answered, evidence = evidence_from_answers(answers, self.classes_, len(self.asked_))
        if not answered.any():
            raise InputError(
                "every answer was an abstention", hint="ask for fewer labels or more budget"
            )
        self.answered_ = self.asked_[answered]
        self.private_labels_ = self.classes_[evidence.argmax(axis=1)] if said is None else said
        self._spread(features, evidence)
        self._teach(pool)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:  # noqa: N803
        """The student's own answers: no teacher is asked and nothing is spent."""
        check_is_fitted(self, "estimator_")
        predicted: NDArray[Any] = self.estimator_.predict(validate_data(self, X, reset=False))
        return predicted

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {**state, "teachers": None} if hasattr(self, "estimator_") else state

    def __sklearn_clone__(self) -> Self:
        # scikit-learn would unfit teachers that are an estimator and deep-copy all others.
        without = copy.copy(self)
        without.teachers = None
        cloned: Self = super(StudentClassifier, without).__sklearn_clone__()
        cloned.teachers = self.teachers
        return cloned

    def _fit_features(self, pool: NDArray[Any]) -> Any:
        """Before anything is asked: a transformer that cannot read the pool must not cost a label.

        Labels have no part in it.
        """
        if isinstance(self.features, str):
            if self.features not in {"learned", "given"}:
                raise InputError(
                    f"unknown features {self.features!r}",
                    hint='use "learned", "given" or a transformer of scikit-learn',
                )
            if self.features == "given":
                return None
            return PublicFeatures(random_state=self.random_state).fit(pool)
        if not hasattr(self.features, "transform"):
            raise InputError(
                f"features must be a word or a transformer, got {self.features!r}",
                hint='use "learned", "given" or a transformer of scikit-learn',
            )
        return clone(self.features).fit(pool)

    def _features_of(self, pool: NDArray[Any], graph_features: ArrayLike | None) -> Floats:
        if graph_features is not None:
            return np.asarray(graph_features, dtype=np.float64)
        found = pool if self.features_ is None else self.features_.transform(pool)
        return np.asarray(found, dtype=np.float64)

    def _classes(self) -> NDArray[Any]:
        if isinstance(self.teachers, Federation):
            names = self.teachers.task.class_names
            if self.classes is not None and len(self.classes) != len(names):
                raise InputError(
                    f"{len(self.classes)} classes for a task with {len(names)}",
                    hint="leave them out: the task names them",
                )
            return np.asarray(names if self.classes is None else self.classes)
        if self.classes is not None:
            return np.asarray(self.classes)
        if not hasattr(self.teachers, "predict"):
            raise InputError("a function does not name its classes", hint="give them as `classes`")
        check_is_fitted(self.teachers)
        return np.asarray(self.teachers.classes_)

    def _ask(self, records: NDArray[Any]) -> tuple[Answers, NDArray[Any] | None]:
        """The only way to the teachers; a refusal of theirs goes through to the caller.

        With counts comes what was released as the label: of equal counts, lots choose one.
        """
        if isinstance(self.teachers, Federation):
            given = self.teachers.ask(records).answers
            positions = [each.label for each in given if each.label is not None]
            if len(positions) == len(given):
                return np.array([each.counts for each in given]), self.classes_[positions]
            labels = [None if each.label is None else self.classes_[each.label] for each in given]
            return labels, None
        # Where teachers abstain, unsure answers are to be skipped, and counts do not say which.
        can_abstain = getattr(self.teachers, "abstain_below", None) is not None
        if hasattr(self.teachers, "predict_counts") and not can_abstain:
            counts: Answers = self.teachers.predict_counts(records)
            return counts, np.asarray(self.teachers.predict(records))  # remembered, so free
        ask = self.teachers.predict if hasattr(self.teachers, "predict") else self.teachers
        answers: Answers = ask(records)
        return answers, None

    def _spread(self, features: NDArray[Any], evidence: Floats) -> None:
        spreading = self.spreading or Spreading()
        graph = neighbour_graph(features, spreading.neighbours)
        arrived = influence(graph, self.answered_, spreading)
        self.spread_ = spread_labels(arrived, evidence, spreading)

    def _teach(self, pool: NDArray[Any]) -> None:
        """Records that no answer reached have no label to learn from.

        Told of one class only, a student always says that class: the labels are paid for already.
        """
        reached = self.spread_.confidence > 0
        labels = self.classes_[self.spread_.labels[reached]]
        estimator = self._default_estimator() if self.estimator is None else clone(self.estimator)
        if len(np.unique(labels)) < 2:
            estimator = DummyClassifier(strategy="most_frequent")
        if self.random_state is not None:
            random = check_random_state(self.random_state)
            seed_every_part(estimator, int(random.randint(2**31 - 1)))
        self.estimator_ = estimator.fit(pool[reached], labels)

    def _default_estimator(self) -> Any:
        """An SVM on the features; they are fitted on the whole pool, so here they are frozen."""
        if self.features_ is None:
            return SVC()
        return Pipeline([("features", FrozenEstimator(self.features_)), ("model", SVC())])
