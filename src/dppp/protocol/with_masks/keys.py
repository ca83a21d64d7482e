"""A teacher's keys of the epochs: made, published, paired with the others', and forgotten.

An epoch is a stretch of the common clock, as long as the task says. Its secret is stored before its
public half leaves and deleted when the epoch after it is over as well, so that batches which began
late in it can end: then nothing of it can be opened any more, by anybody, whatever is stolen later.
Pair keys and prepared dealings are in memory only.
"""

import hashlib
import hmac
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from dppp.errors import EpochOver, ListFault, RosterUnknown, WrongTask
from dppp.masks.dealing import DealerKeys
from dppp.masks.epoch_keys import (
    Epoch,
    EpochKey,
    EpochSecret,
    PairKeys,
    derive_pair_keys,
    own_row_key,
    pair_secret,
)
from dppp.masks.possession import prove_possession, verify_possession
from dppp.protocol.signing import Signer, sign, verify_signature
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.messages import MAC_BYTES, PublishedKey, Roster
from dppp.randomness import RandomSource, system_randomness

_MAC_DOMAIN = b"dppp MAC 2"


class EpochSecrets(Protocol):
    """Where a teacher keeps the secrets of its epochs; what is forgotten must be gone."""

    def put_once(self, task_id: bytes, epoch: int, secret: bytes) -> bytes:
        """Keep the first secret ever put for this epoch, durably, and return that one."""

    def get(self, task_id: bytes, epoch: int) -> bytes | None:
        """The secret of an epoch, or None."""

    def forget_before(self, task_id: bytes, epoch: int) -> None:
        """Delete the secrets of all epochs before this one."""


class MemoryEpochSecrets:
    """For one process that may forget."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, int], bytes] = {}
        self._lock = threading.Lock()

    def put_once(self, task_id: bytes, epoch: int, secret: bytes) -> bytes:
        """Keep the first secret ever put for this epoch, and return that one."""
        with self._lock:
            return self._kept.setdefault((task_id, epoch), secret)

    def get(self, task_id: bytes, epoch: int) -> bytes | None:
        """The secret of an epoch, or None."""
        return self._kept.get((task_id, epoch))

    def forget_before(self, task_id: bytes, epoch: int) -> None:
        """Delete the secrets of all epochs before this one."""
        with self._lock:
            for key in [each for each in self._kept if each[0] == task_id and each[1] < epoch]:
                del self._kept[key]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RosterKeys:
    """What a teacher shares with each member of a roster.

    What every batch needs of it is worked out once: the keys of seals and of MACs.
    """

    epoch: Epoch
    hash: bytes
    own: EpochSecret
    members: tuple[int, ...]
    keys: dict[int, EpochKey]
    pairs: dict[int, PairKeys] = field(repr=False)
    _sealing_keys: dict[int, bytes] = field(init=False)
    _to_members: list[bytes | None] = field(init=False)
    _from_members: dict[int, bytes] = field(init=False)

    def __post_init__(self) -> None:
        own, pairs = self.own.teacher, self.pairs
        sealing = {each: pair.sealing_key for each, pair in pairs.items()}
        sealing[own] = own_row_key(self.own, self.epoch)
        to_members = [
            pairs[each].mac_key(sender=own, receiver=each) if each in pairs else None
            for each in self.members
        ]
        from_members = {
            each: pair.mac_key(sender=each, receiver=own) for each, pair in pairs.items()
        }
        object.__setattr__(self, "_sealing_keys", sealing)
        object.__setattr__(self, "_to_members", to_members)
        object.__setattr__(self, "_from_members", from_members)

    @property
    def own_key(self) -> bytes:
        """The key of this teacher's own rows and roots."""
        return self._sealing_keys[self.own.teacher]

    def sealing_key(self, other: int) -> bytes:
        """The key of seals between this teacher and another, or itself."""
        return self._sealing_keys[other]

    def as_dealer(self) -> DealerKeys:
        """What it takes to deal to all members."""
        return DealerKeys(
            epoch=self.epoch,
            dealer=self.own.teacher,
            own_key=self.own_key,
            recipients=self.members,
            sealing_keys=tuple(map(self.sealing_key, self.members)),
        )

    def make_macs(self, statement: bytes) -> bytes:
        """A MAC of a statement for every member, in order; its own place stays zero."""
        nothing = bytes(MAC_BYTES)
        return b"".join(
            [nothing if key is None else mac_of(key, statement) for key in self._to_members]
        )

    def find_good_macs(self, senders: Sequence[int], statement: bytes, macs: bytes) -> set[int]:
        """Which of these other members said this to this teacher, by a MAC of each."""
        keys = [self._from_members.get(each) for each in senders]
        expected = [b"" if key is None else mac_of(key, statement) for key in keys]
        if hmac.compare_digest(b"".join(expected), macs):
            return set(senders)
        given = [macs[at : at + MAC_BYTES] for at in range(0, len(macs), MAC_BYTES)]
        return {
            sender
            for sender, own, other in zip(senders, expected, given, strict=True)
            if hmac.compare_digest(own, other)
        }


def mac_of(key: bytes, statement: bytes) -> bytes:
    """The MAC of a statement of fixed length, cut to 16 bytes.

    A hash of key and statement is enough for a statement of one length of which half is kept: there
    is nothing to extend. It takes a quarter of the time of `hmac`, and a batch has N·N of them.
    """
    return hashlib.sha256(_MAC_DOMAIN + key + statement).digest()[:MAC_BYTES]


class KeyRing:
    """One teacher's keys of a task."""

    def __init__(
        self,
        *,
        task: Task,
        index: int,
        signer: Signer,
        secrets: EpochSecrets,
        randomness: RandomSource = system_randomness,
    ) -> None:
        self._task = task
        self._index = index
        self._signer = signer
        self._secrets = secrets
        self._randomness = randomness
        self._rosters: dict[bytes, RosterKeys] = {}
        self._forgotten_before = -1

    def publish(self, epoch: int, *, now: int) -> bytes:
        """The public key of an epoch that is on, or just before or after its turn; stored first."""
        self._require_on(epoch, now=now)
        fresh = EpochSecret.generate(self._index, self._randomness)
        kept = self._secrets.put_once(self._task.task_id, epoch, fresh.to_bytes())
        secret = EpochSecret.from_bytes(kept)
        unsigned = PublishedKey(
            task_id=self._task.task_id,
            epoch=epoch,
            teacher=self._index,
            public=secret.key.public,
            possession=prove_possession(secret, self._epoch(epoch)),
        )
        return encode(sign(unsigned, self._signer))

    def take_roster(self, roster: Roster, *, now: int) -> RosterKeys:
        """Check every key of a roster and pair with it; once per roster."""
        if roster.hash in self._rosters:
            return self._rosters[roster.hash]
        self._require_on(roster.epoch, now=now)
        stored = self._secrets.get(self._task.task_id, roster.epoch)
        if stored is None:
            raise RosterUnknown("this teacher has no secret of that epoch; ask for its key first")
        own, epoch = EpochSecret.from_bytes(stored), self._epoch(roster.epoch)
        keys = read_roster(self._task, roster)
        if keys.get(self._index) != own.key:
            raise ListFault("the roster does not have this teacher's own key of the epoch")
        pairs = {
            index: derive_pair_keys(pair_secret(own, key), epoch, own.key, key)
            for index, key in keys.items()
            if index != self._index
        }
        found = RosterKeys(
            epoch=epoch, hash=roster.hash, own=own, members=tuple(keys), keys=keys, pairs=pairs
        )
        self._rosters[roster.hash] = found
        return found

    def roster(self, roster_hash: bytes) -> RosterKeys:
        """The keys of a roster that was taken before, while its epoch lasts."""
        found = self._rosters.get(roster_hash)
        if found is None:
            raise RosterUnknown("this teacher does not know the roster; send it again")
        return found

    def newest_rosters(self) -> tuple[RosterKeys, ...]:
        """The rosters that the next ballots may be cast for: the last one of the last epoch."""
        return tuple(self._rosters.values())[-1:]

    def _epoch(self, number: int) -> Epoch:
        return Epoch(task_id=self._task.task_id, number=number)

    def _require_on(self, epoch: int, *, now: int) -> None:
        current = self._task.epoch_at(now)
        if not current - 1 <= epoch <= current + 1:
            raise EpochOver(
                f"epoch {epoch} is asked for and epoch {current} is on",
                hint="compare the clocks of this teacher and of the aggregator",
            )

    def forget(self, *, now: int) -> frozenset[bytes]:
        """Delete what belongs to epochs before the last one; the rosters that are gone by it."""
        oldest = self._task.epoch_at(now) - 1
        if oldest != self._forgotten_before:
            self._secrets.forget_before(self._task.task_id, oldest)
            self._forgotten_before = oldest
        gone = frozenset(each for each, keys in self._rosters.items() if keys.epoch.number < oldest)
        for each in gone:
            del self._rosters[each]
        return gone


def read_roster(task: Task, roster: Roster) -> dict[int, EpochKey]:
    """The keys in a roster, in order, each signed by its teacher and known to it.

    Run by every teacher, by the aggregator and by whoever judges a complaint.
    """
    if roster.task_id != task.task_id:
        raise WrongTask("the roster is for another task")
    published = [decode(each, PublishedKey) for each in roster.keys]
    indices = [each.teacher for each in published]
    _require_members(task, indices)
    return {each.teacher: read_published(task, roster.epoch, each) for each in published}


def read_published(task: Task, epoch: int, published: PublishedKey) -> EpochKey:
    """A teacher's public key of an epoch, if it is signed by it and it knows the secret."""
    if (published.task_id, published.epoch) != (task.task_id, epoch):
        raise ListFault(
            f"teacher {published.teacher}'s key is of another task or epoch",
            culprits=(published.teacher,),
        )
    verify_signature(task, published)
    key = EpochKey(teacher=published.teacher, public=published.public)
    verify_possession(key, Epoch(task_id=task.task_id, number=epoch), published.possession)
    return key


def _require_members(task: Task, indices: Sequence[int]) -> None:
    if list(indices) != sorted(set(indices)):
        raise ListFault("the roster has a teacher twice or is out of order")
    if not indices or not 1 <= indices[0] <= indices[-1] <= len(task.teachers):
        raise ListFault("the roster names teachers that the task does not have")
    if len(indices) < task.trust.ballots_needed:
        raise ListFault(
            f"the roster has {len(indices)} teachers, and {task.trust.ballots_needed} are needed"
        )
