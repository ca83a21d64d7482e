"""A batch from entries to counts with every party's real work, and what each part cost.

Nothing is sampled here: all N teachers make ballots, t of them make decryption shares, and the
counts must equal the plain sums.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.benchmarks.workload import Workload
from dppp.errors import DpppError
from dppp.experiments.costs.processor_time import time_once
from dppp.paillier.blinding import BlindingTable
from dppp.paillier.dealer import DealtKey
from dppp.paillier.decryption.combination import open_tallies
from dppp.paillier.decryption.opening import verify_openings
from dppp.paillier.decryption.shares import make_decryption_shares
from dppp.paillier.encryption import Ciphertext, add_ballots, encrypt, write_ciphertexts
from dppp.paillier.packing import Packing

_SEED = 20210


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Processor seconds of a whole batch by part, and the bytes that one teacher sends."""

    ballots: float
    tally: float
    shares: float
    combination: float
    verification: float
    ballot_bytes: int
    share_bytes: int

    @property
    def everyone(self) -> float:
        """All parties: ballots, tally, shares and combination."""
        return self.ballots + self.tally + self.shares + self.combination

    def one_teacher(self, workload: Workload) -> float:
        """A teacher that makes a ballot and a share."""
        return self.ballots / workload.teachers + self.shares / workload.threshold


def make_ballot(
    table: BlindingTable, packing: Packing, entries: Sequence[int]
) -> tuple[Ciphertext, ...]:
    """One teacher's ballot: pack, blind, encrypt."""
    return tuple(
        encrypt(table.public, plaintext, table.draw()) for plaintext in packing.pack(entries)
    )


def run_batch(workload: Workload, key: DealtKey, table: BlindingTable) -> Costs:
    """Run the batch with a random subset of t teachers decrypting; raise if the sums differ."""
    public, packing = key.public, workload.packing(key.public)
    entries = workload.draw_entries(_SEED)
    rows = entries.tolist()
    ballots, ballot_seconds = time_once(lambda: [make_ballot(table, packing, row) for row in rows])
    tally, tally_seconds = time_once(lambda: add_ballots(public, ballots))
    chosen = random.Random(_SEED).sample(key.shares, workload.threshold)  # noqa: S311 - who answers
    shares, share_seconds = time_once(
        lambda: [make_decryption_shares(public, share, tally) for share in chosen]
    )
    decrypted, combination_seconds = time_once(lambda: open_tallies(public, tally, shares))
    _, verification_seconds = time_once(lambda: verify_openings(public, tally, decrypted.openings))
    counts = packing.unpack(decrypted.plaintexts, workload.entries)
    if counts != tuple(entries.sum(axis=0).tolist()):
        raise DpppError("the benchmark's counts differ from the plain sums; do not trust it")
    return Costs(
        ballots=ballot_seconds,
        tally=tally_seconds,
        shares=share_seconds,
        combination=combination_seconds,
        verification=verification_seconds,
        ballot_bytes=len(write_ciphertexts(public, ballots[0])),
        share_bytes=len(shares[0].to_bytes(public)),
    )
