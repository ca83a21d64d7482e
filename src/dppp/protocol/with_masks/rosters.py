"""The aggregator's collection of epoch keys: whose it has, and the roster that it makes of them."""

from dppp.errors import SignatureFault
from dppp.protocol.signing import Signer, sign
from dppp.protocol.task import Task
from dppp.protocol.wire import decode, encode
from dppp.protocol.with_masks.keys import read_published
from dppp.protocol.with_masks.messages import KeyRequest, PublishedKey, Roster


class Rosters:
    """Epoch keys that were published to this aggregator."""

    def __init__(self, *, task: Task, signer: Signer) -> None:
        self._task = task
        self._signer = signer
        self._keys: dict[int, dict[int, bytes]] = {}
        self._newest = -1
        self._sent: set[tuple[bytes, int]] = set()
        self._made: dict[tuple[int, tuple[int, ...]], Roster] = {}

    def expect(self, epoch: int) -> None:
        """Keys of this epoch are wanted; those of epochs long over are not kept any more."""
        self._newest = max(self._newest, epoch)
        self._keys.setdefault(epoch, {})
        for old in [each for each in self._keys if each < self._newest - 2]:
            del self._keys[old]

    def take(self, teacher: int, data: bytes) -> None:
        """Keep a teacher's key of an epoch that was asked for; the first one counts."""
        published = decode(data, PublishedKey)
        if published.teacher != teacher:
            raise SignatureFault(f"an epoch key of another came from teacher {teacher}")
        if published.epoch not in self._keys:
            return
        read_published(self._task, published.epoch, published)
        self._keys[published.epoch].setdefault(teacher, data)

    def known(self, epoch: int) -> frozenset[int]:
        """Teachers whose keys of an epoch are there."""
        return frozenset(self._keys.get(epoch, {}))

    def learn(self, roster: Roster) -> None:
        """Know the keys of a roster that is in the store: they were checked when it was made."""
        self.expect(roster.epoch)
        kept = self._keys.setdefault(roster.epoch, {})
        for data in roster.keys:
            kept.setdefault(decode(data, PublishedKey).teacher, data)

    def must_send(self, roster: Roster, teacher: int) -> bool:
        """Whether a teacher was not sent this roster before; from now on it was."""
        place = (roster.hash, teacher)
        is_new = place not in self._sent
        self._sent.add(place)
        return is_new

    def request(self, epoch: int) -> bytes:
        """What a teacher is sent whose key is missing."""
        return encode(sign(KeyRequest(task_id=self._task.task_id, epoch=epoch), self._signer))

    def roster(self, epoch: int, members_wanted: frozenset[int]) -> Roster:
        """The keys of an epoch that are there, of those who are to take part."""
        members = tuple(sorted(self.known(epoch) & members_wanted))
        if (epoch, members) not in self._made:
            keys = tuple(self._keys[epoch][each] for each in members)
            unsigned = Roster(task_id=self._task.task_id, epoch=epoch, keys=keys)
            self._made[epoch, members] = sign(unsigned, self._signer)
        return self._made[epoch, members]
