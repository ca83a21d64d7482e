"""Bring your own model: a function, a table of votes and a scikit-learn model vote together."""

import numpy as np
from sklearn.linear_model import LogisticRegression

from dppp import Federation, calibrate, create_federation, in_process
from dppp.learning.models import VoteTable, as_predict

classes = ["well", "ill"]
rows = np.array([[36.5, 80.0], [39.8, 120.0]])
trained = LogisticRegression().fit([[36, 70], [37, 80], [39, 110], [40, 130]], [*"wwii"])
models = [
    as_predict(lambda inputs: ["ill" if row[0] > 38 else "well" for row in inputs], classes),
    as_predict(VoteTable(rows, ["well", "ill"]), classes),
    as_predict(lambda inputs: np.where(trained.predict(inputs) == "i", "ill", "well"), classes),
] * 5
certificate = calibrate("auto", epsilon=10, delta=1e-5, teachers=15, queries=2, classes=2)
parties = create_federation(
    name="own models",
    class_names=classes,
    features=["temperature", "pulse"],
    certificate=certificate,
    models=models,
    cryptosystem="paillier",
    s=1,
)
federation = Federation(aggregator=parties.aggregator, deliver=in_process(parties.teachers))
for answer in federation.ask(rows).answers:
    print(classes[answer.label or 0], answer.counts)
