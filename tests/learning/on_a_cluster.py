"""Run by test_on_a_cluster: 250 shards trained and asked here, and again by a real Dask cluster."""

import json
import os
import sys
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from dppp.learning.asked import Asked
from dppp.learning.clear_votes import count_by_teacher
from dppp.learning.csv_records import Records
from dppp.learning.models import as_predict
from dppp.learning.training import train_models

SHARDS = 250


class Tree(DecisionTreeClassifier):
    """A tree that knows in which process it was trained."""

    def fit(self, *records: Any) -> "Tree":
        super().fit(*records)
        self.process_ = os.getpid()
        return self


def make_records() -> Records:
    source = np.random.default_rng(7)
    rows = source.normal(size=(8 * SHARDS, 3))
    labels = np.where(rows[:, 0] + rows[:, 1] > 0, "yes", "no").astype(np.str_)
    return Records(features=("a", "b", "c"), rows=rows, labels=labels)


def train_and_ask(records: Records) -> tuple[NDArray[Any], set[int]]:
    """What the models of 250 shards say of 100 records, and in which processes they were made."""
    estimator = Tree(random_state=0)
    trained = train_models(records, estimator, votes=SHARDS, unit="record", key=bytes(32))
    teachers = [[as_predict(model, trained.classes)] for model in trained.models]
    votes = count_by_teacher(teachers, records.rows[:100], Asked(names=trained.classes))
    return votes, {model.process_ for model in trained.models if isinstance(model, Tree)}


def main() -> None:
    records = make_records()
    here, own = train_and_ask(records)
    cluster = LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        host="127.0.0.1",
    )
    with cluster, Client(cluster), joblib.parallel_config(backend="dask"):
        there, workers = train_and_ask(records)
    found = {
        "shards": len(here),
        "own_processes": len(own),
        "other_processes": len(workers - own),
        "agree": bool(np.array_equal(here, there)),
        "right_by_plurality": float(
            (here.sum(axis=0).argmax(axis=1) == (records.labels[:100] == "yes")).mean()
        ),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
