"""A teacher's side of masks: masks its entries, adds up rows, and gives rows of seeds.

    cast request ──► roster known, later attempts shown by t withdrawals? ─► masked ballot
    list ──────────► own header in it, ≥ N - D, every seal opens? ─► sum of rows, MACs, delivery
    certified sum ─► t MACs or signatures, S fits the check blocks? ─► rows of the seeds
    keys, disputes ► (keys.py, disputes.py)

Rows that were opened are kept in memory until the epoch is over, and never stored: after a restart
the list is sent again and opened again, if it comes with the seals that were endorsed.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dppp.errors import (
    DpppError,
    EpochOver,
    ListNotCertified,
    OpeningFault,
    OwnBallotMissing,
    RosterUnknown,
    SealUnopened,
    SumDoesNotFit,
    WrongBatch,
)
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.masks.ballots import HEADER_DIGESTS_BYTES, Header, cast
from dppp.masks.blame import row_bytes
from dppp.masks.dealing import Preparation, prepare, seal_contexts
from dppp.masks.opening import require_fits, secret_from_bytes
from dppp.masks.packing import unpack_blocks
from dppp.masks.parameters import FIELD
from dppp.masks.sealing import TAG_BYTES, Pairs, Purpose
from dppp.masks.sharing import add_rows, elements_to_bytes
from dppp.protocol.cryptosystem import AboutList, Asked, Desk
from dppp.protocol.lists import require_complete, statement_of
from dppp.protocol.messages import (
    SIGNATURE_BYTES,
    BallotRequest,
    Endorsement,
    Endorser,
    ListStatement,
    endorsed_parts,
)
from dppp.protocol.signing import require_certified, require_from_aggregator, sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.deliveries import delivery_of, require_same_delivery
from dppp.protocol.with_masks.disputes import Disputes, OpenedList, require_withdrawn
from dppp.protocol.with_masks.keys import EpochSecrets, KeyRing, RosterKeys
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    CastRequest,
    CertifiedSum,
    DeliveredList,
    KeyRequest,
    MaskedBallot,
    Objection,
    Roster,
    SeedRows,
    evidence_of,
    votes_seed,
)

_PREPARED_AHEAD = 2
"""Dealings that wait for the next ballots."""

_MOST_LISTS = 64
"""Opened lists that are kept ready for their answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskKeys:
    """What a teacher has before the first batch: a place for the secrets of its epochs."""

    secrets: EpochSecrets = field(repr=False)

    def take_part(self, desk: Desk) -> "MaskSide":
        """The side that works at this desk."""
        return MaskSide(self, desk)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnBallot:
    """What a teacher looks for in a list: its own header, under the roster that it was cast for."""

    header_digests: bytes
    roster_hash: bytes

    @classmethod
    def of(cls, ballot: MaskedBallot) -> "OwnBallot":
        """Of a ballot that this teacher cast."""
        header = Header.from_bytes(ballot.header)
        return cls(header_digests=header.digests, roster_hash=ballot.roster_hash)


class MaskSide:
    """Ballots, endorsements and seed rows of one teacher."""

    request_kind = CastRequest.KIND
    list_kind = DeliveredList.KIND
    certified_kind = CertifiedSum.KIND

    def __init__(self, keys: MaskKeys, desk: Desk) -> None:
        self._desk = desk
        self._parameters = desk.task.parameters
        self._ring = KeyRing(
            task=desk.task,
            index=desk.index,
            signer=desk.signer,
            secrets=keys.secrets,
            randomness=desk.randomness,
        )
        self._prepared: dict[bytes, list[Preparation]] = {}
        self._opened: dict[bytes, OpenedList] = {}
        self._last_cast: tuple[bytes, OwnBallot] | None = None
        self._disputes = Disputes(desk, self._ring, self._opened)

    def forget(self, *, now: int) -> None:
        """Delete the secrets of epochs that are over, and all that was made or opened with them."""
        gone = self._ring.forget(now=now)
        for each in [hash_ for hash_, made in self._opened.items() if made.roster.hash in gone]:
            del self._opened[each]
        for each in gone:
            self._prepared.pop(each, None)

    def read_request(self, data: bytes) -> Asked:
        """A request for a ballot, by its form only."""
        asked = decode(data, CastRequest)
        return Asked(
            message=asked,
            request=decode(asked.request, BallotRequest),
            attempt=asked.attempt,
            evidence=evidence_of(asked.withdrawals) if asked.withdrawals else None,
        )

    def require_castable(self, asked: Asked, *, now: int) -> None:  # noqa: ARG002
        """The inner request is the aggregator's too; keys are known; withdrawals are shown."""
        message = asked.message
        assert isinstance(message, CastRequest), "read_request made it"
        require_from_aggregator(self._desk.task, asked.request)
        if message.batch_id != asked.request.batch_id:
            raise WrongBatch("the request and the rows in it are of different batches")
        roster = self._ring.roster(message.roster_hash)
        if roster.epoch.number != message.epoch:
            raise EpochOver("the request names another epoch than that of its roster")
        if asked.attempt > 1:
            require_withdrawn(
                self._desk.task,
                message.withdrawals,
                batch=asked.request.batch_id,
                attempt=asked.attempt - 1,
            )

    def cast(self, asked: Asked, entries: NDArray[np.int64]) -> bytes:
        """Mask the entries with a fresh dealing, and sign the header."""
        message = asked.message
        assert isinstance(message, CastRequest), "read_request made it"
        batch, roster = message.batch_id, self._ring.roster(message.roster_hash)
        header, body = cast(
            self._parameters,
            self._take_preparation(roster),
            entries,
            votes_seed=votes_seed(self._desk.task.task_id, batch, asked.attempt),
            randomness=self._desk.randomness,
        )
        unsigned = MaskedBallot(
            task_id=self._desk.task.task_id,
            batch_id=batch,
            attempt=asked.attempt,
            roster_hash=roster.hash,
            teacher=self._desk.index,
            header=header.to_bytes(),
            check_block=body.check_block,
            votes=body.votes,
            secret_seals=body.secret_seals,
            seed_seals=body.seed_seals,
        )
        ballot = sign(unsigned, self._desk.signer)
        data = encode(ballot)
        self._last_cast = (data, OwnBallot.of(ballot))
        return data

    def prepare(self, *, now: int) -> bool:
        """Forget the secrets of epochs that are over, and deal one secret for the next ballots."""
        self.forget(now=now)
        return any(self.prepare_ahead(count) for count in range(1, _PREPARED_AHEAD + 1))

    def prepare_ahead(self, count: int) -> int:
        """Deal secrets for the next ballots, until this many wait; how many were made.

        They are in memory only and each is taken out before it is used: none is used twice, and a
        crash loses what was not used.
        """
        made = 0
        for roster in self._ring.newest_rosters():
            waiting = self._prepared.setdefault(roster.hash, [])
            while len(waiting) < count:
                waiting.append(self._prepare(roster))
                made += 1
        known = {each.hash for each in self._ring.newest_rosters()}
        self._prepared = {each: kept for each, kept in self._prepared.items() if each in known}
        return made

    def read_list(self, data: bytes) -> AboutList:
        """A list, by its form only."""
        found = decode(data, DeliveredList)
        return AboutList(
            message=found,
            batch_id=found.batch_id,
            list_hash=found.list_hash,
            attempt=found.attempt,
        )

    def endorse(self, listed: AboutList, own_ballot: bytes) -> bytes:
        """The sum of this teacher's rows, and MACs for the others; or which seals do not open."""
        message = listed.message
        assert isinstance(message, DeliveredList), "read_list made it"
        try:
            opened = self._open(message, own_ballot)
        except SealUnopened as fault:
            return self._object(message, fault)
        statement = self._statement(message)
        unsigned = Endorsement(
            statement=statement,
            teacher=self._desk.index,
            content=opened.row_sum
            + opened.roster.make_macs(said_in(statement))
            + delivery_of(message),
        )
        return encode(sign(unsigned, self._desk.signer))

    def recall(self, listed: AboutList, own_ballot: bytes) -> None:
        """Open the rows again where this process has not."""
        message = listed.message
        assert isinstance(message, DeliveredList), "read_list made it"
        if listed.list_hash in self._opened:
            return
        endorsed = self._desk.ledger.find_endorsement(
            listed.batch_id, listed.list_hash, attempt=listed.attempt
        )
        assert endorsed is not None, "a list is opened again once it was endorsed"
        require_same_delivery(message, decode(endorsed, Endorsement))
        self._open(message, own_ballot)

    def is_endorsement(self, data: bytes) -> bool:
        """An objection is an answer to a list too."""
        return kind_of(data) == Endorsement.KIND

    def read_certified(self, data: bytes) -> AboutList:
        """A certified list, by its form only."""
        found = decode(data, CertifiedSum)
        return AboutList(
            message=found,
            batch_id=found.batch_id,
            list_hash=found.list_hash,
            attempt=found.attempt,
        )

    def answer(self, certified: AboutList, endorsement: bytes) -> bytes:
        """The rows of all seeds, once t teachers are known to have endorsed the same list."""
        message = certified.message
        assert isinstance(message, CertifiedSum), "read_certified made it"
        opened = self._opened.get(certified.list_hash)
        if opened is None:
            raise RosterUnknown(
                "this teacher has not opened the rows of this list since it started",
                hint="send the list again",
            )
        self._require_certified(message, decode(endorsement, Endorsement).statement, opened.roster)
        self._require_fits(message, opened)
        unsigned = SeedRows(
            task_id=self._desk.task.task_id,
            batch_id=message.batch_id,
            attempt=message.attempt,
            list_hash=message.list_hash,
            teacher=self._desk.index,
            rows=opened.seed_rows,
        )
        return encode(sign(unsigned, self._desk.signer))

    def settle(self, kind: str, data: bytes, *, now: int) -> bytes | None:
        """Keys of epochs, and disputes."""
        if kind == KeyRequest.KIND:
            asked = decode(data, KeyRequest)
            self._disputes.require_ours(asked, asked.task_id)
            return self._ring.publish(asked.epoch, now=now)
        if kind == Roster.KIND:
            roster = decode(data, Roster)
            self._disputes.require_ours(roster, roster.task_id)
            self._ring.take_roster(roster, now=now)
            return None
        return self._disputes.settle(kind, data)

    def _take_preparation(self, roster: RosterKeys) -> Preparation:
        waiting = self._prepared.get(roster.hash)
        return waiting.pop() if waiting else self._prepare(roster)

    def _prepare(self, roster: RosterKeys) -> Preparation:
        return prepare(self._parameters, roster.as_dealer(), self._desk.randomness)

    def _open(self, message: DeliveredList, own_ballot: bytes) -> OpenedList:
        """Check a list and open all rows that it brings."""
        own = self._read_own(own_ballot)
        require_complete(self._desk.task, message.participants)
        digests = [
            message.header_digests[at : at + HEADER_DIGESTS_BYTES]
            for at in range(0, len(message.header_digests), HEADER_DIGESTS_BYTES)
        ]
        named = dict(zip(message.participants, digests, strict=True))
        is_own = named.get(self._desk.index) == own.header_digests
        if not is_own or message.roster_hash != own.roster_hash:
            raise OwnBallotMissing(
                "this list does not hold the header that this teacher signed, or is of another "
                "roster; it helps to open no other"
            )
        roster = self._ring.roster(message.roster_hash)
        if message.recipient != self._desk.index or not set(named) <= set(roster.members):
            raise OwnBallotMissing("this list is for another teacher, or of others than its roster")
        opened = self._open_rows(message, roster, named)
        while len(self._opened) >= _MOST_LISTS:
            self._opened.pop(next(iter(self._opened)))
        self._opened[message.list_hash] = opened
        return opened

    def _read_own(self, data: bytes) -> OwnBallot:
        """The ballot that the ledger has; mostly it is the one that was made last."""
        if self._last_cast is not None and self._last_cast[0] == data:
            return self._last_cast[1]
        return OwnBallot.of(decode(data, MaskedBallot))

    def _open_rows(
        self, message: DeliveredList, roster: RosterKeys, digests: dict[int, bytes]
    ) -> OpenedList:
        dealers = list(digests)
        heads = [each[:HASH_BYTES] for each in digests.values()]
        seed = votes_seed(message.task_id, message.batch_id, message.attempt)
        pairs = Pairs.of_recipient(
            list(map(roster.sealing_key, dealers)),
            dealers=dealers,
            recipient=self._desk.index,
            contexts=seal_contexts(roster.epoch, seed, heads),
            length=row_bytes(self._parameters, Purpose.SECRET_ROW),
        )
        secret_rows = self._open_kind(message.secret_seals, Purpose.SECRET_ROW, pairs, dealers)
        seed_rows = self._open_kind(message.seed_seals, Purpose.SEED_ROW, pairs, dealers)
        return OpenedList(
            batch_id=message.batch_id,
            attempt=message.attempt,
            list_hash=message.list_hash,
            roster=roster,
            heads=dict(zip(dealers, heads, strict=True)),
            secret_seals=message.secret_seals,
            seed_seals=message.seed_seals,
            row_sum=elements_to_bytes(add_rows(secret_rows)),
            seed_rows=seed_rows.astype("<u2").tobytes(),
        )

    def _open_kind(
        self, seals: bytes, purpose: Purpose, pairs: Pairs, dealers: list[int]
    ) -> NDArray[np.uint16]:
        """The rows of one kind, of all dealers; which dealers' do not open is in the exception."""
        length = row_bytes(self._parameters, purpose)
        if len(seals) != len(dealers) * (length + TAG_BYTES):
            raise OwnBallotMissing("the rows of this list have another length than the task's")
        return _field_elements(pairs.open(purpose, seals, dealers, length=length), dealers, purpose)

    def _object(self, message: DeliveredList, fault: SealUnopened) -> bytes:
        unsigned = Objection(
            task_id=self._desk.task.task_id,
            batch_id=message.batch_id,
            attempt=message.attempt,
            teacher=self._desk.index,
            list_hash=message.list_hash,
            delivery=delivery_of(message),
            purpose=int(fault.purpose),
            dealers=fault.dealers,
        )
        return encode(sign(unsigned, self._desk.signer))

    def _statement(self, message: DeliveredList) -> ListStatement:
        return statement_of(
            self._desk.task,
            batch=message.batch_id,
            of_list=message.list_hash,
            tallies=b"",
            participants=message.participants,
            key_id=message.roster_hash,
        )

    def _require_certified(
        self, message: CertifiedSum, statement: ListStatement, roster: RosterKeys
    ) -> None:
        """T distinct teachers of the list said the same: by their MACs, or by their signatures."""
        if message.recipient != self._desk.index:
            raise ListNotCertified("these MACs are for another teacher")
        if message.signatures:
            require_certified(self._desk.task, statement, _endorsers(message))
            return
        good = self._said_so(message, statement, roster)
        if len(good) < self._desk.task.trust.threshold:
            raise ListNotCertified(
                f"the list has {len(good)} endorsements, and {self._desk.task.trust.threshold} "
                "certify one",
                hint="send their signatures",
            )

    def _said_so(
        self, message: CertifiedSum, statement: ListStatement, roster: RosterKeys
    ) -> set[int]:
        """Who of the list is known to have endorsed it; this teacher's own word needs no MAC."""
        own = self._desk.index
        places = [at for at, each in enumerate(message.endorsers) if each != own]
        good = roster.find_good_macs(
            [message.endorsers[at] for at in places],
            said_in(statement),
            b"".join([message.macs[at * MAC_BYTES : (at + 1) * MAC_BYTES] for at in places]),
        )
        named = good | ({own} & set(message.endorsers))
        return named & set(statement.participants)

    def _require_fits(self, message: CertifiedSum, opened: OpenedList) -> None:
        try:
            check_sum = unpack_blocks(
                message.check_sum,
                blocks=1,
                degree=self._parameters.degree,
                bits=self._parameters.modulus_bits,
            )[0]
            secret = secret_from_bytes(self._parameters, message.secret)
            require_fits(self._parameters, opened.roster.epoch, check_sum, secret)
        except (OpeningFault, DpppError) as fault:
            raise SumDoesNotFit(
                f"nothing is opened with a sum that does not fit: {fault.message}"
            ) from fault


def said_in(statement: ListStatement) -> bytes:
    """What the MACs of an endorsement are over: the list, and nothing of the endorser's own."""
    return hash_parts("dppp endorsement MAC 1", endorsed_parts(statement, 0, b""))


def _endorsers(message: CertifiedSum) -> tuple[Endorser, ...]:
    return tuple(
        Endorser(
            teacher=teacher,
            digest=message.digests[32 * position : 32 * (position + 1)],
            signature=message.signatures[SIGNATURE_BYTES * position :][:SIGNATURE_BYTES],
        )
        for position, teacher in enumerate(message.endorsers)
    )


def _field_elements(
    rows: NDArray[np.uint8], dealers: list[int], purpose: Purpose
) -> NDArray[np.uint16]:
    """Rows as field elements; a dealer that sealed anything else is objected to all the same."""
    elements = np.ascontiguousarray(rows).view("<u2").astype(np.uint16)
    wrong = np.flatnonzero((elements >= FIELD).any(axis=1))
    if len(wrong):
        raise SealUnopened(
            "a dealer sealed what is not a row",
            dealers=tuple(dealers[each] for each in wrong),
            purpose=int(purpose),
        )
    return elements
