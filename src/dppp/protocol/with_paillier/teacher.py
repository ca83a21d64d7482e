"""A teacher's side of paillier: encrypts, checks whole lists, gives decryption shares.

A proof of the shares is asked for only when an opening fails.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import (
    InputError,
    ListFault,
    ListNotEndorsed,
    ListNotServed,
    OwnBallotMissing,
    WrongTask,
)
from dppp.paillier.blinding import Blinding
from dppp.paillier.decryption.shares import DecryptionShares, make_decryption_shares
from dppp.paillier.encryption import Ciphertext, read_ciphertexts, write_ciphertexts
from dppp.paillier.keys import KeyShare, PublicKey
from dppp.paillier.proofs.shares import prove_shares
from dppp.protocol.cryptosystem import AboutList, Asked, Desk
from dppp.protocol.lists import statement_of
from dppp.protocol.messages import (
    Ballot,
    BallotList,
    BallotRequest,
    CertifiedList,
    Endorsement,
    ListStatement,
    ProofRequest,
    SignedShareProof,
    SignedShares,
    list_hash,
    share_context,
    tally_hash,
)
from dppp.protocol.signing import require_certified, require_from_aggregator, sign
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_paillier.ballots import check_list, make_ballot


@dataclass(frozen=True, slots=True, kw_only=True)
class PaillierKeys:
    """What a teacher has from the dealer: the public key and its share of the private one."""

    public: PublicKey
    key_share: KeyShare = field(repr=False)
    draw_blinding: Callable[[], Blinding] = field(repr=False)

    def take_part(self, desk: Desk) -> "PaillierSide":
        """The side that works at this desk."""
        return PaillierSide(self, desk)


class PaillierSide:
    """Ballots, endorsements and decryption shares of one teacher."""

    request_kind = BallotRequest.KIND
    list_kind = BallotList.KIND
    certified_kind = CertifiedList.KIND

    def __init__(self, keys: PaillierKeys, desk: Desk) -> None:
        desk.task.require_key(keys.public)
        if keys.key_share.index != desk.index:
            raise InputError(
                f"the key share is teacher {keys.key_share.index}'s, not teacher {desk.index}'s"
            )
        self._keys = keys
        self._desk = desk
        self._public = keys.public

    def forget(self, *, now: int) -> None:
        """The key share lasts as long as the task."""

    def read_request(self, data: bytes) -> Asked:
        """A request for a ballot, by its form only."""
        request = decode(data, BallotRequest)
        return Asked(message=request, request=request)

    def require_castable(self, asked: Asked, *, now: int) -> None:
        """Nothing beyond the rules of every request."""

    def cast(self, asked: Asked, entries: NDArray[np.int64]) -> bytes:
        """Pack, encrypt, prove and sign."""
        return make_ballot(
            self._desk.task,
            self._public,
            entries.tolist(),
            batch=asked.request.batch_id,
            teacher=self._desk.index,
            signer=self._desk.signer,
            draw_blinding=self._keys.draw_blinding,
            randomness=self._desk.randomness,
        )

    def read_list(self, data: bytes) -> AboutList:
        """A list, by its form only."""
        found = decode(data, BallotList)
        return AboutList(message=found, batch_id=found.batch_id, list_hash=list_hash(found))

    def endorse(self, listed: AboutList, own_ballot: bytes) -> bytes:
        """Check the whole list with every proof in it, and sign what it adds up to."""
        ballot_list = listed.message
        assert isinstance(ballot_list, BallotList), "read_list made it"
        size = self._size_of_own_ballot(ballot_list, own_ballot)
        tallied = check_list(self._desk.task, self._public, ballot_list, size=size)
        statement = statement_of(
            self._desk.task,
            batch=ballot_list.batch_id,
            of_list=listed.list_hash,
            tallies=write_ciphertexts(self._public, tallied.tallies),
            participants=tallied.participants,
        )
        unsigned = Endorsement(statement=statement, teacher=self._desk.index)
        return encode(sign(unsigned, self._desk.signer))

    def recall(self, listed: AboutList, own_ballot: bytes) -> None:
        """A certified list brings all that an answer takes."""

    def is_endorsement(self, data: bytes) -> bool:  # noqa: ARG002
        """There is no other answer to a list."""
        return True

    def read_certified(self, data: bytes) -> AboutList:
        """A certified list, by its form only."""
        found = decode(data, CertifiedList)
        return AboutList(message=found, batch_id=found.batch_id, list_hash=found.list_hash)

    def answer(self, certified: AboutList, endorsement: bytes) -> bytes:
        """Decryption shares of the tallies that this teacher and t in all have endorsed."""
        message = certified.message
        assert isinstance(message, CertifiedList), "read_certified made it"
        statement = self._statement(endorsement)
        tallies = self._endorsed_tallies(message, statement)
        require_certified(self._desk.task, statement, message.endorsers)
        shares = make_decryption_shares(self._public, self._keys.key_share, tallies)
        unsigned = SignedShares(
            task_id=self._desk.task.task_id,
            batch_id=message.batch_id,
            list_hash=message.list_hash,
            teacher=self._desk.index,
            shares=shares.to_bytes(self._public),
        )
        return encode(sign(unsigned, self._desk.signer))

    def settle(self, kind: str, data: bytes, *, now: int) -> bytes | None:  # noqa: ARG002
        """A proof of shares, if one is asked for."""
        if kind != ProofRequest.KIND:
            raise InputError(f"a teacher has no answer to a {kind}")
        return self.prove_shares(data)

    def prepare(self, *, now: int) -> bool:  # noqa: ARG002
        """Nothing is over before the task is, and blindings are drawn ahead elsewhere."""
        return False

    def prove_shares(self, data: bytes) -> bytes:
        """A proof of the shares given before; tells nothing new about the votes."""
        asked = decode(data, ProofRequest)
        if asked.task_id != self._desk.task.task_id:
            raise WrongTask(
                "this message is for another task",
                hint="compare the task's hash with the aggregator's",
            )
        require_from_aggregator(self._desk.task, asked)
        ledger = self._desk.ledger
        endorsement = ledger.find_endorsement(asked.batch_id, asked.list_hash)
        if endorsement is None:
            raise ListNotEndorsed(
                "this teacher has not endorsed this list, so it gives nothing to open it",
                hint="send the list itself first",
            )
        statement = self._statement(endorsement)
        stored = ledger.find_answer(asked.batch_id, asked.list_hash)
        if stored is None:
            raise ListNotServed(
                "no shares were given for this list, so there is nothing to prove",
                hint="send the certified list first",
            )
        tallies = self._endorsed_tallies(asked, statement)
        proof = prove_shares(
            self._public,
            self._keys.key_share,
            tallies,
            DecryptionShares.from_bytes(self._public, decode(stored, SignedShares).shares),
            context=share_context(asked.task_id, asked.batch_id, asked.list_hash),
            randomness=self._desk.randomness,
        )
        unsigned = SignedShareProof(
            task_id=asked.task_id,
            batch_id=asked.batch_id,
            list_hash=asked.list_hash,
            teacher=self._desk.index,
            proof=proof.to_bytes(self._public),
        )
        return encode(sign(unsigned, self._desk.signer))

    def _statement(self, endorsement: bytes) -> ListStatement:
        """What this teacher endorsed, under this task and key.

        Several tasks share a ledger. A list of another one, opened with this one's share of a
        key, would let its colluders choose what is decrypted here.
        """
        statement, task = decode(endorsement, Endorsement).statement, self._desk.task
        if (statement.task_id, statement.key_id) != (task.task_id, task.key_id):
            raise WrongTask(
                "this list was endorsed under another task; nothing of it is opened here"
            )
        return statement

    def _endorsed_tallies(
        self, about: CertifiedList | ProofRequest, statement: ListStatement
    ) -> tuple[Ciphertext, ...]:
        """The tallies in a message, if they are those that this teacher worked out."""
        if tally_hash(about.tallies) != statement.tally_hash:
            raise ListFault("these are not the tallies of the list that was endorsed")
        return read_ciphertexts(self._public, about.tallies)

    def _size_of_own_ballot(self, ballot_list: BallotList, own_ballot: bytes) -> int:
        """How many ciphertexts a ballot has; refuses a list without this teacher's ballot."""
        if own_ballot not in ballot_list.ballots:
            raise OwnBallotMissing(
                "this list does not hold the ballot that this teacher cast, byte for byte; "
                "it helps to open no other"
            )
        return len(read_ciphertexts(self._public, decode(own_ballot, Ballot).ciphertexts))
