"""Both cryptosystems through the real roles, on small work. No test asserts a time."""

import warnings
from typing import Any

import numpy as np
import pytest

from dppp.benchmarks import bare_masks
from dppp.benchmarks.bare_masks import add_masked, expand_by_shake, measure_bare_masks, pair_keys
from dppp.benchmarks.comparison import compare
from dppp.benchmarks.load import BatchLoad
from dppp.benchmarks.party_meter import MeteredBatch, make_request
from dppp.errors import DpppError, InputError
from dppp.federation import Parties
from dppp.protocol.messages import BatchRequest
from dppp.protocol.rows import ballot_request
from dppp.protocol.wire import encode
from dppp.randomness import expand_key

LOAD = BatchLoad(teachers=5, classes=3, labels=7, modulus_bits=512, s=1)


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a short modulus
        return compare(LOAD)


@pytest.fixture
def parties() -> Parties:
    return LOAD.create("masks")


def test_every_ratio_is_of_figures_in_the_same_object(result: dict[str, Any]) -> None:
    masks, paillier, ratios = result["masks"], result["paillier"], result["ratios"]
    for name in ("cpu_ms_per_label", "bytes_sent_per_label", "bytes_received_per_label"):
        assert ratios[f"paillier_over_masks_{name}"] == pytest.approx(paillier[name] / masks[name])
    bare = result["bare_masks_cpu_ms_per_label"]
    assert ratios["masks_over_bare_masks"] == pytest.approx(masks["cpu_ms_per_label"] / bare)
    rest = [
        each["cpu_ms_per_label"] - each["common_cpu_ms_per_label"] for each in (paillier, masks)
    ]
    without = ratios["paillier_over_masks_without_common_work"]
    assert without == pytest.approx(rest[0] / rest[1])


def test_the_parties_of_a_batch_add_up_to_all_of_them(result: dict[str, Any]) -> None:
    for name in ("masks", "paillier"):
        figures = result[name]
        teachers = sum(figures["teachers_cpu_ms_per_label_by_message"].values())
        everyone = teachers + figures["aggregator_cpu_ms_per_label"]
        assert figures["cpu_ms_per_label"] == pytest.approx(everyone)
        assert figures["transcript_verified"] is True


def test_the_keys_of_an_epoch_are_counted_once_and_apart(parties: Parties) -> None:
    first = run(parties, make_request(LOAD, parties, 0, 1))
    second = run(parties, make_request(LOAD, parties, 1, 1))
    assert sorted(first.epoch.teachers) == [1, 2, 3, 4, 5]
    assert not second.epoch.received
    assert first.batch.mean_received() == pytest.approx(second.batch.mean_received(), abs=5)


def test_every_byte_of_a_request_is_in_what_a_teacher_receives(parties: Parties) -> None:
    run(parties, make_request(LOAD, parties, 0, 1))
    short = run(parties, make_request(LOAD, parties, 1, 1))
    request = make_request(LOAD, parties, 2, 41)
    long = run(parties, request)
    more = long.batch.mean_received() - short.batch.mean_received()
    assert long.request_bytes == len(encode(ballot_request(request)))
    assert more == pytest.approx(long.request_bytes - short.request_bytes, abs=20)


def run(parties: Parties, request: BatchRequest) -> Any:
    return MeteredBatch(parties, now=LOAD.now).run(request)


def test_bare_masks_cancel_in_the_sum_and_hide_each_vector() -> None:
    vectors = np.arange(40, dtype=np.uint16).reshape(4, 10)
    keys = pair_keys(4)
    for expand in (expand_by_shake, expand_key):
        assert (add_masked(vectors, keys, expand) == vectors.sum(axis=0)).all()
    assert (bare_masks._mask(0, vectors[0], keys[0], expand_key) != vectors[0]).any()


def test_bare_masks_with_a_wrong_sum_stop_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = pair_keys(3)
    keys[0][1] = bytes(32)
    monkeypatch.setattr(bare_masks, "pair_keys", lambda _: keys)
    with pytest.raises(DpppError, match="wrong sum"):
        measure_bare_masks(teachers=3, entries=10)


def test_work_that_cannot_be_is_refused() -> None:
    for wrong in ((1, 2, 1), (2, 1, 1), (2, 2, 0)):
        teachers, classes, labels = wrong
        with pytest.raises(InputError):
            BatchLoad(teachers=teachers, classes=classes, labels=labels)
