"""Ballots: made by a teacher, read and checked by everyone, multiplied into a tally.

The same checks are run by the aggregator when a ballot comes in, by every teacher before it helps
to open a list, and by whoever verifies a transcript.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from dppp.errors import BallotFault, DpppError, InputError, ListFault
from dppp.paillier.blinding import Blinding
from dppp.paillier.encryption import (
    Ciphertext,
    add_ballots,
    encrypt,
    read_ciphertexts,
    write_ciphertexts,
)
from dppp.paillier.keys import PublicKey
from dppp.paillier.proofs.ballots import BallotProof, ProvenBallot, prove_ballot, verify_ballots
from dppp.protocol.lists import require_complete, require_enough
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BatchId,
    ballot_context,
)
from dppp.protocol.signing import Signer, sign, verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.randomness import RandomSource


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadBallot:
    """A ballot whose signature and form were checked, but not yet its proof."""

    teacher: int
    data: bytes = field(repr=False)
    ciphertexts: tuple[Ciphertext, ...] = field(repr=False)
    proof: BallotProof = field(repr=False)


def make_ballot(
    task: Task,
    public: PublicKey,
    entries: Sequence[int],
    *,
    batch: BatchId,
    teacher: int,
    signer: Signer,
    draw_blinding: Callable[[], Blinding],
    randomness: RandomSource,
) -> bytes:
    """Entries → pack → encrypt → prove → sign. Run by a teacher, once per batch."""
    plaintexts = task.packing.pack(entries)
    blindings = [draw_blinding() for _ in plaintexts]
    ciphertexts = [
        encrypt(public, plaintext, blinding)
        for plaintext, blinding in zip(plaintexts, blindings, strict=True)
    ]
    context = ballot_context(task.task_id, batch, teacher)
    proof = prove_ballot(public, ciphertexts, blindings, context=context, randomness=randomness)
    unsigned = Ballot(
        task_id=task.task_id,
        batch_id=batch,
        teacher=teacher,
        ciphertexts=write_ciphertexts(public, ciphertexts),
        proof=proof.to_bytes(public),
    )
    return encode(sign(unsigned, signer))


def read_ballot(
    task: Task, public: PublicKey, data: bytes, *, batch: BatchId, size: int
) -> ReadBallot:
    """The ballot of `size` ciphertexts in these bytes, if it is one of this task and batch.

    Its proof is checked later, with those of the others.
    """
    ballot = decode(data, Ballot)
    if (ballot.task_id, ballot.batch_id) != (task.task_id, batch):
        raise BallotFault(
            f"teacher {ballot.teacher}'s ballot is for another task or batch; leave it out",
            culprits=(ballot.teacher,),
        )
    verify_signature(task, ballot)
    try:
        ciphertexts = read_ciphertexts(public, ballot.ciphertexts)
        proof = BallotProof.from_bytes(public, ballot.proof)
    except InputError as error:
        raise BallotFault(
            f"teacher {ballot.teacher}'s ballot is not one of this key: {error.message}",
            culprits=(ballot.teacher,),
        ) from error
    if len(ciphertexts) != size:
        raise BallotFault(
            f"teacher {ballot.teacher}'s ballot has {len(ciphertexts)} ciphertexts, expected "
            f"{size}; leave it out",
            culprits=(ballot.teacher,),
        )
    return ReadBallot(teacher=ballot.teacher, data=data, ciphertexts=ciphertexts, proof=proof)


def check_proofs(
    task: Task, public: PublicKey, ballots: Sequence[ReadBallot], batch: BatchId
) -> None:
    """Raise, naming the culprits, unless every ballot's proof holds; all in one equation."""
    verify_ballots(
        public,
        [
            ProvenBallot(
                index=ballot.teacher,
                ciphertexts=ballot.ciphertexts,
                context=ballot_context(task.task_id, batch, ballot.teacher),
                proof=ballot.proof,
            )
            for ballot in ballots
        ],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Tallied:
    """A list that was found good: whose ballots are in it, and the products of their places."""

    participants: tuple[int, ...]
    tallies: tuple[Ciphertext, ...] = field(repr=False)


def tally_ballots(public: PublicKey, ballots: Sequence[ReadBallot]) -> Tallied:
    """Multiply the ballots of a list."""
    return Tallied(
        participants=tuple(ballot.teacher for ballot in ballots),
        tallies=add_ballots(public, [ballot.ciphertexts for ballot in ballots]),
    )


def check_list(task: Task, public: PublicKey, ballot_list: BallotList, *, size: int) -> Tallied:
    """The tallies of a list, if it is complete and every ballot in it is good."""
    if ballot_list.task_id != task.task_id:
        raise ListFault("the ballot list is for another task; refuse it")
    require_enough(task, len(ballot_list.ballots))  # before the work of reading them
    try:
        ballots = [
            read_ballot(task, public, data, batch=ballot_list.batch_id, size=size)
            for data in ballot_list.ballots
        ]
        require_complete(task, [ballot.teacher for ballot in ballots])
        check_proofs(task, public, ballots, ballot_list.batch_id)
    except ListFault:
        raise
    except DpppError as error:
        culprits = getattr(error, "culprits", ())
        raise ListFault(
            f"the list holds a ballot that is not good: {error.message}", culprits=culprits
        ) from error
    return tally_ballots(public, ballots)
