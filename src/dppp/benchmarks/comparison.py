"""Both cryptosystems on the same work in one run, bare masks below them, as one object.

Used by `dppp bench`. A batch is run up to three times, as long as that takes seconds; figures are
those of the run in which all parties together spent the least. Every transcript is verified.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dppp.benchmarks.bare_masks import measure_bare_masks
from dppp.benchmarks.load import MOST_RUNS, WARM_UP_LABELS, BatchLoad
from dppp.benchmarks.party_meter import BatchCosts, MeteredBatch, make_request
from dppp.benchmarks.peers import measure_peers
from dppp.benchmarks.workload import Workload
from dppp.experiments.costs.processor_time import fastest, time_once
from dppp.federation import Parties
from dppp.paillier.dealer import make_primes
from dppp.privacy.sampling import draw_raised_shares
from dppp.protocol.messages import BallotRequest
from dppp.protocol.rows import ballot_request, open_rows, wrapped_key_of
from dppp.protocol.task import Task
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import decode, encode
from dppp.randomness import system_randomness

CRYPTOSYSTEMS = ("masks", "paillier")
_SECONDS_FOR_REPEATS = 30.0
Figures = dict[str, Any]
Progress = Callable[[str], None]


def compare(
    load: BatchLoad,
    *,
    cryptosystems: tuple[str, ...] = CRYPTOSYSTEMS,
    with_peers: bool = False,
    progress: Progress = lambda _: None,
) -> Figures:
    """Measure these cryptosystems, and bare masks beside them; the first one's figures lead."""
    found: Figures = {}
    for each in cryptosystems:
        progress(f"{each}: {load.teachers} teachers, {load.labels} labels")
        found[each] = measure_batches(load, each)
    progress("bare masks")
    first = found[cryptosystems[0]]
    bare = measure_bare_masks(teachers=load.teachers, entries=load.labels * load.classes)
    result: Figures = {"teachers": load.teachers, "classes": load.classes, "labels": load.labels}
    result |= first | found
    result["bare_masks_cpu_ms_per_label"] = 1e3 * bare / load.labels
    if with_peers:
        progress("other packages")
        result["peers"] = _peers(load, first["cpu_ms_per_label"])
    result["ratios"] = ratios_of(result)
    return result


def measure_batches(load: BatchLoad, cryptosystem: str) -> Figures:
    """Batches of one cryptosystem, after one of a single label for which keys are exchanged."""
    parties = load.create(cryptosystem)
    first = _run(load, parties, 0, WARM_UP_LABELS)
    runs: list[BatchCosts] = []
    while not runs or (len(runs) < MOST_RUNS and _spent(runs) < _SECONDS_FOR_REPEATS):
        start = WARM_UP_LABELS + len(runs) * load.labels
        runs.append(_run(load, parties, start, load.labels))
    best = min(runs, key=lambda each: each.batch.everyone)
    return {
        "cryptosystem": cryptosystem,
        **_setting(parties.task, load),
        **_costs_of(load, best),
        **_common_work(load, parties),
        **_epoch_of(first),
        **_transcript_of(load, parties, best),
        "runs": len(runs),
        "measured": "the run with the least processor time of all parties, real roles and messages",
        "peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def ratios_of(result: Mapping[str, Any]) -> dict[str, float]:
    """How many times one figure of this object is another; for those that were measured."""
    ratios = {}
    masks, paillier = result.get("masks"), result.get("paillier")
    if masks and paillier:
        for name in ("cpu_ms_per_label", "bytes_sent_per_label", "bytes_received_per_label"):
            ratios[f"paillier_over_masks_{name}"] = paillier[name] / masks[name]
        ratios["paillier_over_masks_without_common_work"] = _without_common(
            paillier
        ) / _without_common(masks)
    if masks:
        bare = result["bare_masks_cpu_ms_per_label"]
        ratios["masks_over_bare_masks"] = masks["cpu_ms_per_label"] / bare
        ratios["masks_over_bare_masks_without_common_work"] = _without_common(masks) / bare
    return ratios | {
        f"{peer}_over_{result['cryptosystem']}": figures["ratio"]
        for peer, figures in result.get("peers", {}).items()
        if "ratio" in figures
    }


def _without_common(figures: Mapping[str, Any]) -> float:
    return float(figures["cpu_ms_per_label"] - figures["common_cpu_ms_per_label"])


def _run(load: BatchLoad, parties: Parties, first: int, labels: int) -> BatchCosts:
    request = make_request(load, parties, first, labels)
    return MeteredBatch(parties, now=load.now).run(request)


def _spent(runs: list[BatchCosts]) -> float:
    return sum(each.batch.everyone for each in runs)


def _setting(task: Task, load: BatchLoad) -> Figures:
    trust = {"threshold": task.trust.threshold, "queries": task.queries}
    if task.masks is None:
        return trust | {"modulus_bits": load.modulus_bits, "s": load.s}
    ring = task.parameters
    return trust | {
        "degree": ring.degree,
        "ring_modulus_bits": ring.modulus_bits,
        "slot_bits": ring.slot_bits,
        "slots_per_coefficient": ring.slots_per_coefficient,
        "security_bits_after_loss": ring.security_after_loss,
    }


def _costs_of(load: BatchLoad, best: BatchCosts) -> Figures:
    costs, each_label = best.batch, 1 / load.labels
    return {
        "cpu_ms_per_label": 1e3 * costs.everyone * each_label,
        "aggregator_cpu_ms_per_label": 1e3 * costs.aggregator * each_label,
        "teacher_cpu_ms_per_label": 1e3 * costs.one_teacher() * each_label,
        "teacher_cpu_ms_per_batch": 1e3 * costs.one_teacher(),
        "teachers_cpu_ms_per_label_by_message": {
            kind: 1e3 * seconds * each_label for kind, seconds in costs.by_step.items()
        },
        "bytes_sent_per_label": costs.mean_sent() * each_label,
        "bytes_received_per_label": costs.mean_received() * each_label,
        "query_bytes_per_label": best.request_bytes * each_label,
    }


def _common_work(load: BatchLoad, parties: Parties) -> Figures:
    """What a teacher does with the queries, whatever the cryptosystem: open, name, draw noise."""
    request = make_request(load, parties, 0, load.labels)
    asked = replace(ballot_request(request), wrapped_key=wrapped_key_of(request.queries, 1))
    data = encode(asked)

    def work() -> None:
        open_rows(parties.task, 1, parties.row_keys[0], decode(data, BallotRequest))
        draw_raised_shares(parties.task.noise, load.labels * load.classes)

    (seconds,) = fastest([work], 3)
    return {
        "common_cpu_ms_per_label": 1e3 * seconds * load.teachers / load.labels,
        "common_measured": "one teacher opens the request, names its queries and draws its noise, "
        "times the teachers",
    }


def _epoch_of(first: BatchCosts) -> Figures:
    """Keys of an epoch, which many batches use; a cryptosystem without epochs has none."""
    epoch = first.epoch
    if not epoch.received:
        return {"epoch_cpu_ms": 0.0}
    return {
        "epoch_cpu_ms": 1e3 * epoch.everyone,
        "epoch_teacher_cpu_ms": 1e3 * epoch.one_teacher(),
        "epoch_bytes_sent": epoch.mean_sent(),
        "epoch_bytes_received": epoch.mean_received(),
    }


def _transcript_of(load: BatchLoad, parties: Parties, best: BatchCosts) -> Figures:
    transcript = parties.aggregator.transcript(best.identifier)
    assert transcript is not None, "the batch was released"
    data = transcript.to_bytes()
    _, seconds = time_once(lambda: verify_transcript(data, insecure_testing=True))
    return {
        "transcript_bytes_per_label": len(data) / load.labels,
        "verify_cpu_ms_per_label": 1e3 * seconds / load.labels,
        "transcript_verified": True,
    }


def _peers(load: BatchLoad, ours_ms: float) -> dict[str, dict[str, object]]:
    workload = Workload(
        teachers=load.teachers,
        classes=load.classes,
        modulus_bits=load.modulus_bits,
        s=1,
        labels=load.labels,
    )
    primes = make_primes(load.modulus_bits, system_randomness)
    return measure_peers(workload, primes, ours_ms)
