"""Adversaries under masks: teachers that break one rule, an aggregator that lies, a broker.

A byzantine teacher is a real one whose side was changed (tests/protocol/with_masks/colluders.py).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.protocol.parties import RecordedRandomness, seeded
from tests.protocol.with_masks.colluders import (
    Answer,
    add_to_rows,
    complaining,
    deal_badly,
    endorse_another_sum,
    giving_other_seed_rows,
    objecting_to,
    showing_another_root,
    silent_about,
)
from tests.simulation.operations import (
    EQUIVOCATIONS,
    FORGED,
    MISBEHAVIOURS,
    Equivocate,
    Forge,
    Misbehave,
    Operation,
    Plan,
)
from tests.small_federation import cast_each_vote

from dppp.errors import DpppError
from dppp.masks.dealing import seed_row_bytes
from dppp.masks.equal_logarithms import PROOF_BYTES
from dppp.masks.sealing import Purpose
from dppp.privacy.ledger.store import MemoryStore
from dppp.protocol.events import Send
from dppp.protocol.messages import UNSIGNED, Signed
from dppp.protocol.signing import sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.messages import (
    MAC_BYTES,
    CastRequest,
    CertifiedSum,
    DeliveredList,
    KeyRequest,
    RefundNotice,
    RootRequest,
    Roster,
    RowRequest,
    SealEvidence,
    WithdrawalRequest,
)
from dppp.protocol.with_masks.teacher import MaskSide

if TYPE_CHECKING:
    from tests.simulation.masked_world import MaskedWorld

HARMLESS = ("withhold endorsement", "withhold answer", "bias")
"""What C colluders may do and every batch is still released, whoever else is silent.

Whoever is named is left out of later batches, and then counts as one who dropped out.
"""
MASKED_MISBEHAVIOURS = (
    *HARMLESS,
    "other seed rows",
    "false objection",
    "other rows",
    "other rows of seeds",
    "bad seal",
    "bad check block",
    "wrong sum",
    "another root",
    "silent in disputes",
)
LIES_ABOUT_LISTS = (
    "without one",  # still a quorum, if there is one to spare
    "below quorum",
    "alone",  # the victim's ballot and nobody else's
    "without the victim",
    "other seals",  # one that does not open
    "asks for roots",  # without a withdrawal
    "gives back",  # the charge, without a withdrawal
)
LIES_ABOUT_SUMS = (
    "too few endorsers",
    "endorser twice",
    "other sum",
    "asks to withdraw",
    "another list certified",  # the MACs of the list, for the list without its first ballot
    "asks for seed rows",  # which were not given yet
)
MASKED_LIES = (*LIES_ABOUT_LISTS, *LIES_ABOUT_SUMS, "next attempt")
MASKED_FORGED = (
    CastRequest.KIND,
    DeliveredList.KIND,
    CertifiedSum.KIND,
    WithdrawalRequest.KIND,
)
"""The kinds of messages that somebody may make up in the aggregator's name."""


def masked(plan: Plan, *, is_gentle: bool = False) -> Plan:
    """The plan with what an adversary does under masks in the place of what it does otherwise."""
    ways = HARMLESS if is_gentle else MASKED_MISBEHAVIOURS

    def other(place: int, each: Operation) -> Operation:
        match each:
            case Misbehave():
                return replace(each, how=ways[(MISBEHAVIOURS.index(each.how) + place) % len(ways)])
            case Equivocate():
                lie = (EQUIVOCATIONS.index(each.how) + plan.seed) % len(MASKED_LIES)
                return replace(each, how=MASKED_LIES[lie])
            case Forge():
                return replace(each, kind=MASKED_FORGED[FORGED.index(each.kind)])
        return each

    operations = tuple(other(place, each) for place, each in enumerate(plan.operations))
    return replace(plan, operations=operations)


class MaskedColluder:
    """A real teacher that breaks one rule."""

    def __init__(self, world: "MaskedWorld", index: int, how: str) -> None:
        self._world, self._index, self._how = world, index, how
        ledger = world.setting.new_ledger(index, MemoryStore())
        self._randomness = RecordedRandomness(seeded(world.plan.seed, "byzantine", index))
        self._teacher = world.make_masking_teacher(index, ledger, self._randomness)
        other = index % world.plan.teachers + 1
        self._answer = self._answers(other)
        change = self._changes(other)
        side = self._teacher._side
        assert isinstance(side, MaskSide)
        if change is not None:
            change(side)
        if how == "bias":
            cast_each_vote(self._teacher, times=0)

    def handle(self, data: bytes) -> list[bytes]:
        said: bytes | None = None
        with suppress(DpppError):  # it refuses, and may still say something
            said = self._teacher.handle(data, now=self._world.seconds(self._index))
        try:
            return self._answer(data, said)
        except DpppError:
            return []  # what it got was changed on the way

    def _changes(self, other: int) -> Callable[[MaskSide], None] | None:
        source = self._randomness
        match self._how:
            case "other rows":
                return deal_badly(secret_rows=add_to_rows([other]), randomness=source)
            case "other rows of seeds":
                return deal_badly(seed_rows=add_to_rows([other]), randomness=source)
            case "bad seal":
                return deal_badly(break_seals=[(other, Purpose.SEED_ROW)], randomness=source)
            case "bad check block":
                return deal_badly(break_check_block=True, randomness=source)
            case "wrong sum" | "another root" | "silent in disputes":
                return endorse_another_sum
        return None

    def _answers(self, other: int) -> Answer:
        setting = self._world.setting
        signer = setting.signer(self._index)
        disputes = (WithdrawalRequest, RootRequest, RowRequest, SealEvidence)
        row_bytes = seed_row_bytes(setting.task.parameters)
        falsely = complaining(self._index, signer, lambda _: (b"\x09" * 32, bytes(PROOF_BYTES)))
        ways: dict[str, Answer] = {
            "withhold endorsement": silent_about(DeliveredList.KIND),
            "withhold answer": silent_about(CertifiedSum.KIND),
            "other seed rows": giving_other_seed_rows(signer, [0], row_bytes=row_bytes),
            "false objection": objecting_to(other, self._index, signer, then=falsely),
            "another root": showing_another_root(signer),
            "silent in disputes": silent_about(*(each.KIND for each in disputes)),
        }
        return ways.get(self._how, silent_about())


class MaskedLiar:
    """An aggregator that tells some teachers something else, signed with its own key."""

    def __init__(self, world: "MaskedWorld") -> None:
        self._world = world
        self._lies = [each for each in world.plan.operations if isinstance(each, Equivocate)]
        self._told = [0] * len(self._lies)
        self._lists: dict[int, DeliveredList] = {}

    def keeps(self, _data: bytes) -> bool:
        return False

    def push_other_lists(self) -> list[Send]:
        return []

    def tell(self, send: Send) -> list[bytes]:
        for place, lie in enumerate(self._lies):
            if send.teacher in lie.victims and self._told[place] < lie.times * len(lie.victims):
                other = self._other(send, lie)
                if other is not None:
                    self._told[place] += 1
                    return [other] if lie.is_instead else [other, send.data]
        return [send.data]

    def _other(self, send: Send, lie: Equivocate) -> bytes | None:
        batch, made = self._world.asked[lie.batch].batch, None
        if kind_of(send.data) == DeliveredList.KIND:
            self._lists[send.teacher] = decode(send.data, DeliveredList)
        match kind_of(send.data):
            case DeliveredList.KIND if lie.how in LIES_ABOUT_LISTS:
                found = decode(send.data, DeliveredList)
                if found.batch_id == batch:
                    made = self._about_list(found, send.teacher, lie.how)
            case CertifiedSum.KIND if lie.how in LIES_ABOUT_SUMS:
                certified = decode(send.data, CertifiedSum)
                if certified.batch_id == batch:
                    made = self._about_sum(certified, lie.how)
            case CastRequest.KIND if lie.how == "next attempt":
                cast = decode(send.data, CastRequest)
                made = replace(cast, attempt=cast.attempt + 1) if cast.batch_id == batch else None
        return None if made is None else encode(sign(made, self._world.setting.aggregator_signer))

    def _about_list(self, found: DeliveredList, victim: int, how: str) -> Any:
        match how:
            case "asks for roots":
                return RootRequest(**_ids(found), withdrawals=())
            case "gives back":
                return RefundNotice(**_ids(found), withdrawals=())
            case "other seals":
                changed = bytes([found.secret_seals[0] ^ 1]) + found.secret_seals[1:]
                return replace(found, secret_seals=changed)
        others = [each for each in found.participants if each != victim]
        needed = self._world.setting.task.trust.ballots_needed
        gone = {
            "without one": others[:1],
            "below quorum": others[: len(found.participants) - needed + 1],
            "without the victim": [victim],
            "alone": others,
        }
        return _without(found, gone[how])

    def _for_another_list(self, found: CertifiedSum) -> CertifiedSum | None:
        listed = self._lists[found.recipient]
        others = [each for each in listed.participants if each != found.recipient]
        cut = _without(listed, others[:1])
        return None if cut is None else replace(found, list_hash=cut.list_hash)

    def _about_sum(self, found: CertifiedSum, how: str) -> Any:
        few = self._world.setting.task.trust.threshold - 1
        macs = found.macs[: few * MAC_BYTES]
        bare: dict[str, Any] = {"digests": b"", "signatures": b""}
        match how:
            case "too few endorsers":
                return replace(found, endorsers=found.endorsers[:few], macs=macs, **bare)
            case "endorser twice":
                twice = (*found.endorsers[:few], found.endorsers[0])
                return replace(found, endorsers=twice, macs=macs + macs[:MAC_BYTES], **bare)
            case "other sum":
                return replace(found, secret=bytes([found.secret[0] ^ 1]) + found.secret[1:])
            case "another list certified":
                return self._for_another_list(found)
            case "asks to withdraw":
                return WithdrawalRequest(**_ids(found))
            case _:
                return RowRequest(
                    **_ids(found), purpose=int(Purpose.SEED_ROW), dealers=found.endorsers[:1]
                )


def _ids(about: DeliveredList | CertifiedSum | CastRequest) -> dict[str, Any]:
    return {"task_id": about.task_id, "batch_id": about.batch_id, "attempt": about.attempt}


def _without(found: DeliveredList, gone: list[int]) -> DeliveredList | None:
    """The list without these; None if nothing would change, or nobody be left."""
    keep = [at for at, each in enumerate(found.participants) if each not in gone]
    count = len(found.participants)
    if not 0 < len(keep) < count:
        return None

    def cut(data: bytes) -> bytes:
        size = len(data) // count
        return b"".join(data[at * size : (at + 1) * size] for at in keep)

    return replace(
        found,
        participants=tuple(found.participants[at] for at in keep),
        header_digests=cut(found.header_digests),
        secret_seals=cut(found.secret_seals),
        seed_seals=cut(found.seed_seals),
    )


class MaskedForger:
    """A broker that says things in the aggregator's name, without the aggregator's key.

    It repeats what it sees, unsigned or signed by another; a request to withdraw it makes up.
    """

    _MESSAGES: tuple[type[Any], ...] = (
        KeyRequest,
        Roster,
        CastRequest,
        DeliveredList,
        CertifiedSum,
    )

    def __init__(self, world: "MaskedWorld") -> None:
        self._world = world
        self._forgeries = [each for each in world.plan.operations if isinstance(each, Forge)]
        self._times = [0] * len(self._forgeries)
        self._signatures = [UNSIGNED]
        self.forged: list[bytes] = []

    def forge(self, send: Send) -> list[bytes]:
        kind = {each.KIND: each for each in self._MESSAGES}.get(kind_of(send.data))
        if kind is None:
            return []
        seen = decode(send.data, kind)
        if seen.signature != self._signatures[-1]:  # one request goes to all, signed once
            self._signatures.append(seen.signature)
        found = []
        for place, each in enumerate(self._forgeries):
            is_victim = send.teacher in each.victims and self._is_about(seen, each)
            if is_victim and self._times[place] < each.times * len(each.victims):
                self._times[place] += 1
                found.append(self._made_up(self._claim(seen, each), send.teacher, each.how))
        self.forged += found
        return found

    def _is_about(self, seen: Any, forgery: Forge) -> bool:
        is_made_up = forgery.kind == WithdrawalRequest.KIND
        wanted = DeliveredList.KIND if is_made_up else forgery.kind
        batch = self._world.asked[forgery.batch].batch
        return bool(wanted == seen.KIND and seen.batch_id == batch)

    @staticmethod
    def _claim(seen: Any, forgery: Forge) -> Signed:
        claim: Signed = seen
        if forgery.kind == WithdrawalRequest.KIND:
            claim = WithdrawalRequest(**_ids(seen))
        return claim

    def _made_up(self, claim: Any, victim: int, how: str) -> bytes:
        if how == "unsigned":
            return encode(replace(claim, signature=UNSIGNED))
        if how == "signed by a teacher":
            teacher = victim % self._world.plan.teachers + 1
            return encode(sign(claim, self._world.setting.signer(teacher)))
        another = next(each for each in reversed(self._signatures) if each != claim.signature)
        return encode(replace(claim, signature=another))
