"""What proofs add: every teacher proves its ballot, every decrypting teacher checks the list.

All N ballots are proven for real; one checker's batch verification is measured and counted t
times. To build long lists quickly, blindings are sums of two of a few: the cost of proving and
checking is the same, the secrecy is not, and these ballots go nowhere.
"""

import itertools
import random
from dataclasses import dataclass

from gmpy2 import mpz

from dppp.benchmarks.workload import Workload
from dppp.experiments.costs.processor_time import time_once
from dppp.paillier.blinding import Blinding, BlindingTable
from dppp.paillier.encryption import Ciphertext, add_ballots, encrypt
from dppp.paillier.keys import PublicKey
from dppp.paillier.proofs.ballots import BallotProof, ProvenBallot, prove_ballot, verify_ballots

_PARENTS = 24
_SEED = 20212


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofCosts:
    """Processor seconds for a batch: all proofs, one check of the list, one product of it."""

    labels: int
    proving: float
    checking_once: float
    multiplying_once: float
    proof_bytes: int

    def everyone_ms_per_label(self, workload: Workload) -> float:
        """All parties' processor time for proofs: N made, t times the list checked."""
        seconds = self.proving + workload.threshold * self.checking_once
        return 1e3 * seconds / self.labels

    def one_teacher(self, workload: Workload) -> float:
        """Seconds of a teacher that proves its ballot, checks the list and multiplies it."""
        return self.proving / workload.teachers + self.checking_once + self.multiplying_once


def measure_proofs(
    workload: Workload, public: PublicKey, table: BlindingTable, labels: int
) -> ProofCosts:
    """The cost of proofs in a batch of `labels`."""
    count = workload.packing(public).plaintexts_for(labels * workload.classes)
    drawn = _cheap_ballots(workload.teachers, count, public, table)
    contexts = [f"benchmark, teacher {index}".encode() for index in range(1, len(drawn) + 1)]

    def prove_all() -> list[BallotProof]:
        return [
            prove_ballot(public, ciphertexts, blindings, context=context)
            for (ciphertexts, blindings), context in zip(drawn, contexts, strict=True)
        ]

    proofs, proving = time_once(prove_all)
    ballots = [
        ProvenBallot(index=index, ciphertexts=ciphertexts, context=context, proof=proof)
        for index, ((ciphertexts, _), context, proof) in enumerate(
            zip(drawn, contexts, proofs, strict=True), start=1
        )
    ]
    _, checking = time_once(lambda: verify_ballots(public, ballots))
    _, multiplying = time_once(
        lambda: add_ballots(public, [ballot.ciphertexts for ballot in ballots])
    )
    return ProofCosts(
        labels=labels,
        proving=proving,
        checking_once=checking,
        multiplying_once=multiplying,
        proof_bytes=len(proofs[0].to_bytes(public)),
    )


def _cheap_ballots(
    teachers: int, count: int, public: PublicKey, table: BlindingTable
) -> list[tuple[tuple[Ciphertext, ...], tuple[Blinding, ...]]]:
    parents = [table.draw() for _ in range(_PARENTS)]
    pairs = [_joined(public, first, second) for first, second in itertools.combinations(parents, 2)]
    choice = random.Random(_SEED)  # noqa: S311 - which of the pairs, not a secret
    ballots = []
    for _ in range(teachers):
        blindings = tuple(choice.choice(pairs) for _ in range(count))
        ciphertexts = tuple(encrypt(public, mpz(1), blinding) for blinding in blindings)
        ballots.append((ciphertexts, blindings))
    return ballots


def _joined(public: PublicKey, first: Blinding, second: Blinding) -> Blinding:
    return Blinding(
        exponent=first.exponent + second.exponent,
        root=mpz(1),
        factor=first.factor * second.factor % public.ciphertext_modulus,
        shift=first.shift + second.shift,
    )
