"""A colluder signs whatever bytes: nobody honest is named, and the batch ends.

Each run takes one seed. Messages of the colluder are changed in a field or two and signed anew, so
that they are its own word; now and then the true one follows. Another fault leads into disputes.
"""

import random
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from tests.protocol.with_masks.colluders import (
    Answer,
    add_to_rows,
    deal_badly,
    endorse_another_sum,
)
from tests.protocol.with_masks.federation import Federation, set_up
from tests.small_federation import seeded

from dppp.errors import DpppError
from dppp.masks.sealing import Purpose
from dppp.protocol.events import Abort
from dppp.protocol.messages import Endorsement
from dppp.protocol.receipt import Receipt
from dppp.protocol.signing import Signer, sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.batch import MaskBatch
from dppp.protocol.with_masks.messages import PublishedKey
from dppp.protocol.with_masks.teacher import MaskSide

pytestmark = pytest.mark.attack

RUNS = 24
KINDS: dict[str, type[Any]] = {**MaskBatch.kinds, PublishedKey.KIND: PublishedKey}
FAULTS: tuple[Callable[[MaskSide], None] | None, ...] = (
    None,
    endorse_another_sum,
    deal_badly(secret_rows=add_to_rows([1, 3])),
    deal_badly(seed_rows=add_to_rows([2])),
    deal_badly(break_check_block=True),
    deal_badly(break_seals=[(4, Purpose.SECRET_ROW)]),
    deal_badly(break_seals=[(1, Purpose.SEED_ROW)]),
)


def other_value(value: Any, source: random.Random) -> Any:
    if is_dataclass(value):
        return other_message(value, source)
    if isinstance(value, int):
        return source.choice([value + 1, max(0, value - 1), 0, 1, source.randrange(20), 2**31])
    if isinstance(value, bytes):
        flipped = bytearray(value or b"\x00")
        flipped[source.randrange(len(flipped))] ^= 1 << source.randrange(8)
        longer, zeros, ones = value + b"\x00", bytes(len(value)), b"\xff" * len(value)
        return source.choice([b"", value[:-1], longer, zeros, ones, bytes(flipped)])
    assert isinstance(value, tuple)
    others = tuple(other_value(each, source) for each in value)
    shuffled = tuple(source.sample(value, len(value)))
    return source.choice([(), value[:-1], (*value, *value[-1:]), shuffled, others])


def other_message(message: Any, source: random.Random) -> Any:
    """The message with another value in a field that is not its sender or signature."""
    chosen = source.choice(
        [each.name for each in fields(message) if each.init and each.name not in _KEPT]
    )
    return replace(message, **{chosen: other_value(getattr(message, chosen), source)})


_KEPT = ("teacher", "signature")


def signing_garbage(signer: Signer, source: random.Random, said_instead: list[str]) -> Answer:
    rate = source.choice([0.2, 0.6, 1.0])

    def answer(_asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or source.random() > rate:
            return [] if said is None else [said]
        replies = []
        for _ in range(source.choice([1, 1, 2])):
            try:
                changed = other_message(decode(said, KINDS[kind_of(said)]), source)
                replies.append(encode(sign(changed, signer)))
            except DpppError:
                continue  # it has no encoding
        said_instead.extend(map(kind_of, replies))
        return replies + ([said] if source.random() < 0.3 else [])

    return answer


def run(seed: int) -> tuple[Receipt | Abort, list[str]]:
    source, said_instead = seeded("garbage", seed), []  # type: tuple[random.Random, list[str]]
    federation = Federation(set_up(7, 2, 1))
    faulty, talker = source.sample(federation.setting.everybody, 2)
    fault = source.choice(FAULTS)
    if fault is not None:
        federation.corrupt(faulty, fault)
    signer = federation.setting.signer(talker)
    federation.answers[talker] = signing_garbage(signer, source, said_instead)
    end = federation.ask()
    assert set(federation.blamed) <= {faulty, talker}, federation.blamed
    if isinstance(end, Receipt):
        federation.require_right_sums(end)
    else:
        assert {*end.culprits, *end.missing} <= {faulty, talker}
        assert end.culprits or end.missing
    return end, said_instead


def test_nobody_honest_is_named_for_what_a_colluder_signs() -> None:
    ends = [run(seed) for seed in range(RUNS)]
    kinds = {kind for _, said in ends for kind in said}
    assert {Endorsement.KIND, PublishedKey.KIND, "masked ballot", "root"} <= kinds
    assert sum(isinstance(end, Receipt) for end, _ in ends) > RUNS / 4
