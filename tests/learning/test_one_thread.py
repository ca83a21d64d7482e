import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from threadpoolctl import threadpool_info, threadpool_limits

from dppp import PrivateVotingClassifier


def threads() -> int:
    return max(each["num_threads"] for each in threadpool_info())


class Counting(ClassifierMixin, BaseEstimator):
    """Notes the threads that numerical libraries may use while it is trained and asked."""

    seen: list[int] = []  # noqa: RUF012 - of all copies

    def fit(self, X, y):  # noqa: ARG002, N803
        self.classes_ = np.unique(y)
        self.seen.append(threads())
        return self

    def predict(self, X):  # noqa: N803
        self.seen.append(threads())
        return np.where(X[:, 0] > 0, self.classes_[-1], self.classes_[0])


def test_models_are_trained_and_asked_on_one_thread_each_and_the_caller_keeps_its_own() -> None:
    rows = np.random.default_rng(0).normal(size=(300, 2))
    with threadpool_limits(limits=2):
        before = threads()
        private = PrivateVotingClassifier(
            Counting(), n_teachers=3, queries=5, votes=2, cryptography=False, random_state=0
        ).fit(rows, rows[:, 0] > 0)
        private.predict(rows[:2])
        assert threads() == before
    assert len(Counting.seen) > 9
    assert set(Counting.seen) == {1}
