"""The endorsements of one list: sums of rows, of which enough give the sum of the secrets.

Run by the aggregator. Once the sum of the secrets fits the check blocks, those who endorsed are
shown each other's word, and are asked to open the list.
"""

from collections.abc import Collection, Sequence

from dppp.errors import PeerFault
from dppp.masks.dealing import secret_row_bytes
from dppp.masks.opening import recover_secret, require_fits, secret_to_bytes
from dppp.masks.packing import pack_bits
from dppp.masks.ring import ShortPolynomial
from dppp.masks.sharing import elements_from_bytes
from dppp.protocol.messages import Endorsement, Endorser
from dppp.protocol.signing import Signer, sign
from dppp.protocol.wire import encode
from dppp.protocol.with_masks.ballots import ClosedList
from dppp.protocol.with_masks.messages import DELIVERY_BYTES, MAC_BYTES, CertifiedSum


class Endorsements:
    """Who endorsed a list, with which sum of rows."""

    def __init__(self, closed: ClosedList) -> None:
        self._list = closed
        self._parameters = closed.run.task.parameters
        self._row_bytes = secret_row_bytes(self._parameters)
        self._members = closed.members
        self._secret: ShortPolynomial | None = None
        self._certified: tuple[int, ...] = ()
        self.taken: dict[int, Endorsement] = {}

    @property
    def is_certified(self) -> bool:
        """Whether the sum of the secrets is known."""
        return self._secret is not None

    @property
    def secret(self) -> ShortPolynomial:
        """The sum of the secrets, which fits the check blocks."""
        assert self._secret is not None, "nothing is answered before the sum fits"
        return self._secret

    @property
    def sums(self) -> dict[int, bytes]:
        """Everybody's sum of rows."""
        return {each: said.content[: self._row_bytes] for each, said in self.taken.items()}

    def take(self, message: Endorsement) -> None:
        """Keep an endorsement of this list that its teacher signed."""
        teacher = message.teacher
        macs_bytes = MAC_BYTES * len(self._members)
        if len(message.content) != self._row_bytes + macs_bytes + DELIVERY_BYTES:
            raise PeerFault(
                f"teacher {teacher}'s endorsement has another length than the task's",
                culprits=(teacher,),
            )
        elements_from_bytes(message.content[: self._row_bytes], self._row_bytes // 2)
        self.taken[teacher] = message

    def certify(self, believed: Collection[int]) -> None:
        """The sum of the secrets from the sums of these, or the reason why it does not fit."""
        sums = {each: row for each, row in self.sums.items() if each in believed}
        secret = recover_secret(self._parameters, sums)
        epoch = self._list.run.epoch
        self._secret = require_fits(self._parameters, epoch, self._list.check_sum, secret)
        self._certified = tuple(sorted(self.taken))

    def show(self, teacher: int, signer: Signer, *, with_signatures: bool) -> bytes:
        """Who endorsed the list, as one teacher can check it, and the sum of the secrets."""
        said = [self.taken[each] for each in self._certified]
        short = [Endorser.of(each) for each in said] if with_signatures else []
        unsigned = CertifiedSum(
            task_id=self._list.run.task.task_id,
            batch_id=self._list.run.batch_id,
            attempt=self._list.run.attempt,
            list_hash=self._list.statement.list_hash,
            recipient=teacher,
            endorsers=self._certified,
            macs=self._macs_for(said, teacher),
            digests=b"".join(each.digest for each in short),
            signatures=b"".join(each.signature for each in short),
            check_sum=pack_bits(self._list.check_sum, self._parameters.modulus_bits),
            secret=secret_to_bytes(self.secret.coefficients),
        )
        return encode(sign(unsigned, signer))

    def endorsers(self, count: int) -> tuple[Endorser, ...]:
        """The first of those who were shown, for a receipt."""
        return tuple(Endorser.of(self.taken[each]) for each in self._certified[:count])

    def _macs_for(self, said: Sequence[Endorsement], teacher: int) -> bytes:
        """What these endorsers made for one teacher."""
        start = self._row_bytes + MAC_BYTES * self._members.index(teacher)
        stop = start + MAC_BYTES
        return b"".join([each.content[start:stop] for each in said])
