"""Connections that were never seen on a wire, easy to tell apart."""

from tests.experiments.teachers.test_svm import connections

from dppp.experiments.datasets.nsl_kdd import NslKdd


def made_up_connections(train=2_000, test=150, seed=3):
    """Freshly made, so that a test may change them."""
    return NslKdd(
        train=connections(train, seed),
        test=connections(test, seed + 1),
        official_test=connections(5, seed + 2),
    )
