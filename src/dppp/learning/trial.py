"""One trial on a table of records: private answers beside what less privacy would give."""

from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from dppp.learning.csv_records import Records
from dppp.learning.estimator import PrivateVotingClassifier
from dppp.learning.examples.local_models import table_model


def run_trial(
    records: Records, *, queries: int, seed: int, **parameters: Any
) -> tuple[dict[str, Any], list[tuple[int, str]]]:
    """Hold out `queries` records, train on the rest, ask; the figures, and the labels by record."""
    order = check_random_state(seed).permutation(len(records.rows))
    asked, kept = order[:queries], order[queries:]
    private = PrivateVotingClassifier(
        table_model(), queries=queries, random_state=seed, **parameters
    )
    private.fit(records.rows[kept], records.labels[kept])
    truth = records.labels[asked]
    predicted = private.predict(records.rows[asked])
    votes = np.array([teacher.predict(records.rows[asked]) for teacher in private.teachers_])
    tally = np.stack([(votes == name).sum(axis=0) for name in private.classes_])
    centralised = table_model().fit(records.rows[kept], records.labels[kept])
    certificate = private.certificate_
    result = {
        "records": len(records.rows),
        "queries": queries,
        "accuracy_private": float(np.mean(predicted == truth)),
        "accuracy_plurality": float(np.mean(private.classes_[tally.argmax(axis=0)] == truth)),
        "accuracy_single": float(np.mean(votes == truth)),
        "accuracy_centralised": float(centralised.score(records.rows[asked], truth)),
        "epsilon_spent": private.privacy_spent_["epsilon"],
        "simulated": certificate.is_simulated,
        **{
            name: certificate.to_json()[name]
            for name in ("noise", "variance", "epsilon", "delta", "teachers", "certified")
        },
    }
    return result, [(int(place), str(label)) for place, label in zip(asked, predicted, strict=True)]
