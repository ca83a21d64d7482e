"""The benchmark as one object: what `dppp bench --json` prints. Used by `dppp bench`."""

import resource
from collections.abc import Callable, Sequence
from dataclasses import replace

import gmpy2
import numpy as np

from dppp.benchmarks.peers import measure_peers
from dppp.benchmarks.proof_costs import ProofCosts, measure_proofs
from dppp.benchmarks.steps import measure_steps, root_step
from dppp.benchmarks.supplied_powers import TEACHERS as SHARE_TEACHERS
from dppp.benchmarks.supplied_powers import measure_supplied_powers
from dppp.benchmarks.whole_run import Costs, make_ballot, run_batch
from dppp.benchmarks.workload import Workload
from dppp.experiments.costs.paper_protocol import run_paper
from dppp.experiments.costs.processor_time import fastest, time_once
from dppp.experiments.costs.whole_federation import run_federation
from dppp.paillier.arithmetic.modexp import load_libcrypto, power_secret
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey, make_primes
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import encrypt
from dppp.paillier.keys import Decryption
from dppp.privacy.noise import Skellam
from dppp.privacy.sampling import sampling_table
from dppp.protocol.messages import BallotRequest
from dppp.protocol.transcript import verify_transcript
from dppp.randomness import random_below, system_randomness

PROOF_BATCHES = (50, 500, 5000)
SCALING_TEACHERS = (100, 1000)
SAMPLING_VARIANCE = 1801.0
"""Skellam at ε = 0.05, δ = 1e-3 for one query, all of it in one share."""
_REPEATS = 12
_SAMPLING_REPEATS = 5
Primes = tuple[gmpy2.mpz, gmpy2.mpz]


def run_benchmark(
    workload: Workload,
    *,
    proof_batches: tuple[int, ...] = PROOF_BATCHES,
    scaling_teachers: tuple[int, ...] = SCALING_TEACHERS,
    share_teachers: tuple[int, ...] = SHARE_TEACHERS,
    with_steps: bool = False,
    with_peers: bool = False,
) -> dict[str, object]:
    """Measure everything for one workload; every ratio is of figures from this run."""
    primes = make_primes(workload.modulus_bits, system_randomness)
    key = workload.deal(primes, Decryption.ROOT)
    table = BlindingTable(key.public)
    costs = run_batch(workload, key, table)
    paper_key = replace(workload, s=1).deal(primes, Decryption.PAPER)
    paper = run_paper(paper_key, workload.draw_entries(1)[:, 0].tolist())
    paper_ms = 1e3 * workload.classes * paper.costs.everyone
    result = _head(workload, key, table) | _costs(workload, costs, paper_ms)
    proofs = [
        measure_proofs(workload, key.public, table, labels)
        for labels in sorted({workload.labels, *proof_batches})
    ]
    result |= _proofs(workload, costs, proofs)
    result |= measure_supplied_powers(
        workload,
        primes,
        ballot=costs.ballots / workload.teachers / workload.labels,
        proofs=proofs,
        teachers=share_teachers,
    )
    result["share_over_modexp"] = share_over_modexp(key)
    result["teacher_cpu_ms_per_label_by_teachers"] = _scaling(workload, primes, scaling_teachers)
    if with_steps:
        steps = measure_steps(workload, paper_key, paper)
        steps += [root_step(*_root_run(replace(workload, s=s), primes)) for s in (1, 2, 3, 4)]
        result["steps"] = steps
    if with_peers:
        result["peers"] = measure_peers(workload, primes, _everyone_ms(workload, costs))
    return result


def measure_federation(workload: Workload) -> dict[str, object]:
    """One batch of a whole embedded federation: every role, hardened, real messages."""
    run = run_federation(
        teachers=workload.teachers,
        classes=workload.classes,
        labels=workload.labels,
        modulus_bits=workload.modulus_bits,
        s=workload.s,
    )
    assert run.outcome.transcript is not None, "every input is new"
    transcript = run.outcome.transcript.to_bytes()
    _, verified = time_once(lambda: verify_transcript(transcript, insecure_testing=True))
    ballots = run.meter.rounds[BallotRequest.KIND].cpu_seconds
    teachers = run.meter.teachers_cpu_seconds
    steps = {
        "ballots": ballots,
        "list checks and shares": teachers - ballots,
        "aggregator": run.cpu_seconds - teachers,
    }
    return {
        "federation_teachers": workload.teachers,
        "federation_queries": workload.labels,
        "federation_classes": workload.classes,
        "federation_cpu_seconds": run.cpu_seconds,
        "federation_cpu_ms_per_label": 1000 * run.cpu_seconds / workload.labels,
        "federation_steps": {name: seconds / run.cpu_seconds for name, seconds in steps.items()},
        "federation_verify_cpu_seconds": verified,
        "federation_transcript_bytes": len(transcript),
        "federation_peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def measure_sampling(draws: int = 1_000_000) -> dict[str, float]:
    """How fast noise shares are drawn, against numpy's own generator, which is not secure."""
    table = sampling_table(Skellam(share_variance=SAMPLING_VARIANCE))
    generator = np.random.default_rng()  # the yardstick, never used for noise
    mean = SAMPLING_VARIANCE / 2
    ours, numpys = fastest(
        (
            lambda: table.draw(draws),
            lambda: generator.poisson(mean, draws) - generator.poisson(mean, draws),
        ),
        _SAMPLING_REPEATS,
    )
    return {
        "sampling_variance": SAMPLING_VARIANCE,
        "samples_per_second": draws / ours,
        "numpy_samples_per_second": draws / numpys,
        "sampling_over_numpy": numpys / ours,
    }


def share_over_modexp(key: DealtKey) -> float:
    """One decryption share over one constant-time exponentiation of the modulus' size."""
    public = key.public
    table = BlindingTable(public, bytes_limit=2_000_000)
    ciphertexts = [encrypt(public, gmpy2.mpz(7), table.draw())]
    base = random_below(public.modulus, system_randomness)
    exponent = random_below(public.modulus, system_randomness)
    share, plain = fastest(
        (
            lambda: make_decryption_shares(public, key.shares[0], ciphertexts),
            lambda: power_secret(base, exponent, public.modulus),
        ),
        4 * _REPEATS,
    )
    return share / plain


def _head(workload: Workload, key: DealtKey, table: BlindingTable) -> dict[str, object]:
    return {
        "teachers": workload.teachers,
        "threshold": workload.threshold,
        "classes": workload.classes,
        "modulus_bits": workload.modulus_bits,
        "s": workload.s,
        "labels": workload.labels,
        "slot_bits": workload.slot_bits,
        "entry_bound": workload.entry_bound,
        "labels_per_ciphertext": workload.labels_per_ciphertext(key.public),
        "table_megabytes": table.table_bytes / 1e6,
        "constant_time_modexp": "libcrypto" if load_libcrypto() else "gmpy2",
        "arithmetic": f"gmpy2 {gmpy2.version()}, {gmpy2.mp_version()}",
    }


def _everyone_ms(workload: Workload, costs: Costs) -> float:
    return 1e3 * costs.everyone / workload.labels


def _costs(workload: Workload, costs: Costs, paper_ms: float) -> dict[str, object]:
    per_label = 1e3 / workload.labels
    everyone = _everyone_ms(workload, costs)
    return {
        "sums_checked": True,
        "cpu_ms_per_label": everyone,
        "cpu_ms_per_label_by_part": {
            "ballots": costs.ballots * per_label,
            "tally": costs.tally * per_label,
            "shares": costs.shares * per_label,
            "combination": costs.combination * per_label,
        },
        "teacher_cpu_ms_per_label": costs.one_teacher(workload) * per_label,
        "opening_check_cpu_ms_per_label": costs.verification * per_label,
        "paper_cpu_ms_per_label": paper_ms,
        "paper_measured": "1 class of 1 label with every party's work, times the classes",
        "ratio_to_paper": paper_ms / everyone,
    }


def _proofs(workload: Workload, costs: Costs, proofs: Sequence[ProofCosts]) -> dict[str, object]:
    """Proofs and the list: made by all, checked by each decrypting teacher."""
    own = next(measured for measured in proofs if measured.labels == workload.labels)
    sent = costs.ballot_bytes + costs.share_bytes + own.proof_bytes
    listed = workload.teachers * (costs.ballot_bytes + own.proof_bytes)
    return {
        "proof_cpu_ms_per_label": own.everyone_ms_per_label(workload),
        "proof_cpu_ms_per_label_by_batch": {
            str(measured.labels): measured.everyone_ms_per_label(workload) for measured in proofs
        },
        "proofs_measured": "all ballots proven; one teacher's check of the list, times threshold",
        "list_check_cpu_ms_per_label": 1e3
        * (own.checking_once + own.multiplying_once)
        / workload.labels,
        "bytes_sent_per_label": sent / workload.labels,
        "list_bytes_per_label": listed / workload.labels,
        "paper_bytes_per_label": 3 * workload.classes * 256,
    }


def _scaling(workload: Workload, primes: Primes, numbers: tuple[int, ...]) -> dict[str, float]:
    """Ballot and share of one teacher, for keys of different numbers of teachers."""
    works = [_one_teacher(replace(workload, teachers=teachers), primes) for teachers in numbers]
    seconds = fastest(works, _REPEATS)
    return {
        str(teachers): 1e3 * least / workload.labels
        for teachers, least in zip(numbers, seconds, strict=True)
    }


def _one_teacher(workload: Workload, primes: Primes) -> Callable[[], object]:
    key = workload.deal(primes, Decryption.ROOT)
    table, packing = BlindingTable(key.public), workload.packing(key.public)
    entries = workload.draw_entries(0)[0].tolist()

    def work() -> object:
        ballot = make_ballot(table, packing, entries)
        return make_decryption_shares(key.public, key.shares[0], ballot)

    return work


def _root_run(workload: Workload, primes: Primes) -> tuple[Workload, Costs]:
    key = workload.deal(primes, Decryption.ROOT)
    return workload, run_batch(workload, key, BlindingTable(key.public))
