"""Small federations for tests: real roles and bytes, short moduli that anyone can factor."""

import os
from collections.abc import Sequence

import numpy as np
from tests.small_federation import (
    SmallFederation,
    asked_of,
    dealt_key,
    kept_certificate,
    make_setting,
    seal_table,
    small_federation,
)

from dppp.federation import Federation, Parties, create_federation, in_process
from dppp.privacy.certificate import Certificate
from dppp.protocol.messages import BatchRequest
from dppp.protocol.signing import sign
from dppp.protocol.votes import Predict

FEATURES = ("first", "second")
CLASS_NAMES = ("no", "yes", "perhaps")
NOW = 1_000
DEADLINE = 2_000


def certificate(
    teachers: int = 5,
    colluders: int = 1,
    dropouts: int = 1,
    queries: int = 40,
    noise: str = "skellam",
) -> Certificate:
    return kept_certificate(
        noise,
        epsilon=20,
        delta=1e-4,
        teachers=teachers,
        colluders=colluders,
        dropouts=dropouts,
        queries=queries,
        classes=len(CLASS_NAMES),
    )


def first_feature(rows: np.ndarray) -> Sequence[int]:
    """A model: the class is the first feature."""
    return [int(row[0]) for row in rows]


def small(
    *,
    model: Predict = first_feature,
    abstain_below: int | None = None,
    of: Certificate | None = None,
    s: int = 1,
) -> SmallFederation:
    """A federation of its own: other signing keys, so another task, each time."""
    chosen = of or certificate()
    setting = make_setting(
        chosen,
        dealt_key(chosen.trust.teachers, chosen.trust.threshold, s),
        name="small",
        class_names=CLASS_NAMES,
        features=FEATURES,
        source=os.urandom,
        abstain_below=abstain_below,
    )
    return small_federation(setting, models=[model] * chosen.trust.teachers)


def certain(*, model: Predict = first_feature, votes: int = 20, is_masked: bool = False) -> Parties:
    """A federation with so many votes that no noise can change a label."""
    chosen = certificate()
    trust = chosen.trust
    return create_federation(
        name="certain",
        class_names=CLASS_NAMES,
        features=FEATURES,
        certificate=chosen,
        models=[[model] * votes] * trust.teachers,
        key=None if is_masked else dealt_key(trust.teachers, trust.threshold, 1),
    )


def federation(parties: Parties, *, without: Sequence[int] = ()) -> Federation:
    present = {index: each for index, each in parties.teachers.items() if index not in without}
    return Federation(aggregator=parties.aggregator, deliver=in_process(present))


def rows(*labels: int) -> np.ndarray:
    return np.array([[label, position] for position, label in enumerate(labels)], dtype=float)


def request_for(
    parties: Parties, *labels: int, nonce: int = 0, deadline: int = DEADLINE
) -> BatchRequest:
    """A request that the aggregator signed; other nonces make other queries of the same rows."""
    queries = seal_table(parties.task, rows(*labels), seed=nonce)
    return sign(BatchRequest(deadline=deadline, queries=queries), parties.aggregator_signer)


def sent_to(parties: Parties, request: BatchRequest, teacher: int) -> bytes:
    """What the aggregator sends one teacher of a request."""
    return asked_of(request, teacher, parties.aggregator_signer)
