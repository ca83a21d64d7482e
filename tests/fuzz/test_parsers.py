"""Whatever the bytes, a reader gives back a value or one of the declared refusals.

No other exception, no hang, no memory out of proportion; and what is read has only this one
encoding. CI tries hundreds of inputs for each reader, DPPP_SOAK=1 many thousands.
"""

import tracemalloc

import msgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.crash.runs import identify
from tests.crash.setting import NOW, request_of
from tests.fuzz.masked_samples import (
    MASKED_KINDS,
    READER,
    TO_MASKING_AGGREGATORS,
    make_masked_samples,
    named,
)
from tests.fuzz.samples import KINDS, TO_AGGREGATORS, Decoder, TeachersMessage, make_samples
from tests.fuzz.strategies import bombs, damaged, encoded_otherwise, rearranged, rearranged_json
from tests.left_out import IS_SOAK

from dppp.errors import DpppError, TaskError, TranscriptError, WireError
from dppp.protocol.aggregator import Aggregator
from dppp.protocol.messages import (
    BallotList,
    CertifiedList,
    Endorsement,
    SignedShares,
)
from dppp.protocol.receipt import RECEIPT_CHECKS, Receipt, verify_receipt
from dppp.protocol.task import Task
from dppp.protocol.transcript import CHECKS, verify_transcript
from dppp.protocol.wire import Message, decode
from dppp.protocol.with_paillier.batch import PaillierBatch

EXAMPLES = 1000 if IS_SOAK else 60
FLIPS_IN_CI = 300

DECODERS = {
    decoder.name: decoder
    for decoder in (*make_samples().decoders(), *make_masked_samples().decoders())
}
PACKED = [name for name in DECODERS if name in {kind.KIND for kind in KINDS} or "," in name]
LEDGER = [name for name in DECODERS if name.startswith("ledger")]
DOCUMENTS = ["federation file", "join request"]

tried = settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def read(decoder: Decoder, data: bytes) -> None:
    """Anything but a refusal of ours is the failure."""
    try:
        found = decoder.read(data)
    except DpppError:
        return
    if decoder.again is not None:
        assert decoder.again(found) == data, "two encodings of one value"


@pytest.mark.parametrize("name", DECODERS)
def test_good_bytes_are_read(name: str) -> None:
    decoder = DECODERS[name]
    found = decoder.read(decoder.good)
    if decoder.again is not None:
        assert decoder.again(found) == decoder.good


@pytest.mark.parametrize("kind", TO_AGGREGATORS)
def test_the_aggregator_reads_and_keeps_a_good_message(kind: type[TeachersMessage]) -> None:
    """Else the readers above would pass over whatever they are given."""
    samples = make_samples()
    good = samples.messages[kind.KIND]
    wrong = bytearray(good)
    wrong[-1] ^= 1  # of the signature, which comes last
    states = []
    for data in (b"", bytes(wrong), good):
        aggregator = samples.aggregator_before(kind)
        aggregator.receive(1, data, now=NOW)
        batch = aggregator._batches[identify(request_of(samples.setting, 0))]
        assert isinstance(batch, PaillierBatch)
        states.append((batch.voters, batch.endorsers, batch.sharers, set(batch._proven)))
        assert batch.faults == {}
    nothing, after_wrong, after_good = states
    assert after_wrong == nothing != after_good


@pytest.mark.parametrize("kind", TO_MASKING_AGGREGATORS)
def test_the_aggregator_reads_and_keeps_a_good_message_under_masks(
    kind: type[TeachersMessage],
) -> None:
    moment = make_masked_samples().moments[kind.KIND]
    wrong = bytearray(moment.data)
    wrong[-1] ^= 1  # of the signature, which comes last
    states = []
    for data in (b"", bytes(wrong), moment.data):
        aggregator = moment.copy()
        assert isinstance(aggregator, Aggregator)
        (batch,) = aggregator._batches.values()
        aggregator.receive(READER, data, now=moment.federation.now)
        states.append((batch.status, batch.wanted(), batch.faults))
    nothing, after_wrong, after_good = states
    assert after_wrong == nothing != after_good


@pytest.mark.parametrize("name", DECODERS)
@tried
@given(data=st.data())
def test_random_and_damaged_bytes_are_read_or_refused(name: str, data: st.DataObject) -> None:
    decoder = DECODERS[name]
    read(decoder, data.draw(st.one_of(st.binary(max_size=300), damaged(decoder.good), bombs())))


@pytest.mark.parametrize("name", PACKED)
@tried
@given(data=st.data())
def test_rearranged_messages_are_read_or_refused(name: str, data: st.DataObject) -> None:
    read(DECODERS[name], data.draw(rearranged(DECODERS[name].good)))


@pytest.mark.parametrize("name", [*(kind.KIND for kind in KINDS), *map(named, MASKED_KINDS)])
@tried
@given(data=st.data())
def test_another_encoding_of_a_message_is_refused(name: str, data: st.DataObject) -> None:
    decoder = DECODERS[name]
    otherwise = data.draw(encoded_otherwise(decoder.good))
    if otherwise != decoder.good:
        with pytest.raises(WireError):
            decoder.read(otherwise)


@pytest.mark.parametrize("name", [*LEDGER, *DOCUMENTS])
@tried
@given(data=st.data())
def test_rearranged_ledger_records_and_documents_are_read_or_refused(
    name: str, data: st.DataObject
) -> None:
    read(DECODERS[name], data.draw(rearranged_json(DECODERS[name].good)))


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (BallotList, "ballots"),
        (CertifiedList, "endorsers"),
        (Receipt, "participants"),
        (Receipt, "endorsers"),
        (Receipt, "openings"),
        (Receipt, "answers"),
    ],
)
@pytest.mark.parametrize("filling", [b"\xc0", b"\x80", b"\x90", b"\x91"])
def test_small_things_by_the_million_cost_no_more_than_their_bytes(
    kind: type[Message], name: str, filling: bytes
) -> None:
    """A list of empty maps grows seventyfold when it is built; so it must not be built."""
    count = 2_000_000
    good = msgpack.unpackb(make_samples().messages[kind.KIND])
    data = msgpack.packb({**good, name: None})[:-1] + b"\xdd" + count.to_bytes(4, "big")
    tracemalloc.start()
    with pytest.raises(WireError):
        decode(data + filling * count, kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * count


HOSTILE_NOISE = [
    *(("polya", [8.0, ratio]) for ratio in (1e-300, 1 - 1e-7, 1 - 2**-53)),
    *(("polya", [shape, 0.5]) for shape in (1e-300, 1e15, 1e300)),
    *(("skellam", [variance]) for variance in (5e-324, 1e12, 1e18, 1e300)),
    *(("binomial", [tosses]) for tosses in (1.0, 1e12, 1e300, 2.5)),
    *(("discrete-gaussian", [sigma]) for sigma in (1e-300, 1e-3, 1e6, 1e300)),
]


@pytest.mark.parametrize(("family", "parameters"), HOSTILE_NOISE)
def test_a_task_whose_noise_would_take_forever_is_refused_at_once(
    family: str, parameters: list[float]
) -> None:
    terms = {"family": family, "parameters": parameters, "shares": 2}
    with pytest.raises(TaskError):
        decode(_task_with(noise_terms=terms), Task)


@pytest.mark.parametrize("queries", [10**6, 10**9, 2**62])
def test_a_task_with_queries_past_counting_is_refused_at_once(queries: int) -> None:
    with pytest.raises(TaskError):
        decode(_task_with(queries=queries), Task)


@pytest.mark.parametrize("bits", [2**40, 2**62])
def test_a_task_with_plaintexts_past_every_key_is_refused(bits: int) -> None:
    with pytest.raises(TaskError, match="no key"):
        decode(_task_with(plaintext_bits=bits), Task)


@pytest.mark.parametrize("part", range(4))
def test_one_flipped_bit_anywhere_in_a_transcript_is_named(part: int) -> None:
    good = make_samples().transcript
    verify_transcript(good, insecure_testing=True)
    bits = 8 * len(good)
    step = 4 if IS_SOAK else 4 * (bits // FLIPS_IN_CI)
    for position in range(part * step // 4, bits, step):
        flipped = bytearray(good)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(TranscriptError) as caught:
            verify_transcript(bytes(flipped), insecure_testing=True)
        assert caught.value.check in CHECKS


@pytest.mark.parametrize("part", range(4))
def test_one_flipped_bit_anywhere_in_a_receipt_is_named(part: int) -> None:
    good = make_samples().receipt
    verify_receipt(good, insecure_testing=True)
    bits = 8 * len(good)
    step = 4 if IS_SOAK else 4 * (bits // FLIPS_IN_CI)
    for position in range(part * step // 4, bits, step):
        flipped = bytearray(good)
        flipped[position // 8] ^= 1 << position % 8
        with pytest.raises(TranscriptError) as caught:
            verify_receipt(bytes(flipped), insecure_testing=True)
        assert caught.value.check in RECEIPT_CHECKS


@tried
@given(data=st.data())
def test_a_rearranged_certified_list_is_answered_only_if_t_endorsements_are_whole(
    data: st.DataObject,
) -> None:
    """The aggregator signs whatever it likes."""
    samples = make_samples()
    good = samples.messages[CertifiedList.KIND]
    endorsers = samples.all_endorsers()
    plain = msgpack.unpackb(good)
    some = data.draw(st.lists(st.sampled_from(endorsers), max_size=len(endorsers) + 1))
    if data.draw(st.booleans()):
        changed = msgpack.packb({**plain, "endorsers": some})
    else:
        changed = data.draw(rearranged(good))
    try:
        message = decode(changed, CertifiedList)
        answer = samples.answer_to(message)
    except DpppError:
        return
    assert decode(answer, SignedShares).teacher == 1
    named = [each.teacher for each in message.endorsers]
    whole = {each["teacher"]: each["signature"] for each in endorsers}
    assert len(set(named)) == len(named) >= samples.setting.task.trust.threshold
    assert all(whole[each.teacher] == each.signature for each in message.endorsers)
    assert (message.list_hash, message.tallies) == (plain["list_hash"], plain["tallies"])


def test_an_endorsement_of_more_teachers_than_there_can_be_is_refused_unread() -> None:
    plain = msgpack.unpackb(make_samples().messages[Endorsement.KIND])
    statement = {**plain["statement"], "participants": [1] * Endorsement.SIZE_LIMIT}
    with pytest.raises(WireError, match="nothing was parsed"):
        decode(msgpack.packb({**plain, "statement": statement}), Endorsement)


def _task_with(**changes: object) -> bytes:
    plain = msgpack.unpackb(make_samples().messages[Task.KIND])
    return bytes(msgpack.packb({**plain, **changes}))
