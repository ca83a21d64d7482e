"""The keys of one epoch: every teacher makes a secret, and every two teachers share keys from it.

A teacher publishes the public half of its secret, signed by its long-term key and with a proof of
possession (`possession.py`), and deletes the secret when the batches of the epoch have ended. So
whoever steals a teacher's keys later opens nothing of the past. Two teachers have one X25519
secret in common (RFC 7748); a dispute shows that value, so that everybody can derive the keys of
this pair in this epoch, which are of no use after it: exclude the pair from then on.

The secret is 32 random bytes. The X25519 scalar is the clamped hash of them, exactly as Ed25519
makes its own (RFC 8032, section 5.1.5), so the same secret can sign that it is possessed.
Nothing here withstands a quantum computer.
"""

import hashlib
import hmac
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from dppp.errors import EpochKeyFault, GroupElementError, InputError, KeyMaterialError
from dppp.masks.curve25519 import LOW_ORDER_U, decode_u, is_on_curve

RandomBytes = Callable[[int], bytes]

MOST_TEACHERS = 65_535
SECRET_BYTES = 32
TASK_ID_BYTES = 32
_NUMBER_BYTES = 8
_INDEX_BYTES = 4
_SECRET_TAG = b"dppp epoch secret 1\n"
_EPOCH_DOMAIN = b"dppp epoch 1"
_PAIR_DOMAIN = b"dppp pair keys 1"
_OWN_ROW_DOMAIN = b"dppp own row key 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """Which epoch of which task; every key and proof of an epoch is bound to it."""

    task_id: bytes
    number: int

    def __post_init__(self) -> None:
        if len(self.task_id) != TASK_ID_BYTES or not 0 <= self.number < 2 ** (8 * _NUMBER_BYTES):
            raise InputError("an epoch needs a task id of 32 bytes and a number below 2^64")

    def to_bytes(self) -> bytes:
        """The canonical encoding, of fixed length."""
        return _EPOCH_DOMAIN + self.task_id + self.number.to_bytes(_NUMBER_BYTES, "big")


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochKey:
    """The public half of a teacher's epoch secret: a u-coordinate, canonical, not of low order."""

    teacher: int
    public: bytes

    def __post_init__(self) -> None:
        require_index(self.teacher)
        try:
            u = decode_u(self.public)
        except GroupElementError as error:
            raise self.fault(str(error)) from None
        if u in LOW_ORDER_U:
            raise self.fault("its point is of low order, so its secrets would be known to all")

    def to_bytes(self) -> bytes:
        """Index and u-coordinate, of fixed length."""
        return self.teacher.to_bytes(_INDEX_BYTES, "big") + self.public

    def fault(self, reason: str) -> EpochKeyFault:
        """The exception that names this teacher."""
        text = f"the epoch key of teacher {self.teacher} cannot be used: {reason}; leave it out"
        return EpochKeyFault(text, culprits=(self.teacher,))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class EpochSecret:
    """A teacher's secret of one epoch. It is stored as long as the epoch lasts and then deleted."""

    teacher: int
    secret: bytes
    key: EpochKey = field(init=False)
    _exchange: X25519PrivateKey = field(init=False)

    def __post_init__(self) -> None:
        require_index(self.teacher)
        if len(self.secret) != SECRET_BYTES:
            raise KeyMaterialError(
                "an epoch secret has 32 bytes",
                hint="make a new one",
            )
        exchange = X25519PrivateKey.from_private_bytes(hashlib.sha512(self.secret).digest()[:32])
        public = exchange.public_key().public_bytes_raw()
        object.__setattr__(self, "_exchange", exchange)
        object.__setattr__(self, "key", EpochKey(teacher=self.teacher, public=public))

    def __repr__(self) -> str:
        return f"EpochSecret(teacher={self.teacher}, secret=<redacted>)"

    @classmethod
    def generate(cls, teacher: int, randomness: RandomBytes = os.urandom) -> Self:
        """A teacher's fresh secret, once per epoch."""
        return cls(teacher=teacher, secret=randomness(SECRET_BYTES))

    def to_bytes(self) -> bytes:
        """For the teacher's own store, which must forget it when the epoch has ended."""
        return _SECRET_TAG + self.teacher.to_bytes(_INDEX_BYTES, "big") + self.secret

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read strictly what `to_bytes` made."""
        head = len(_SECRET_TAG)
        if len(stored) != head + _INDEX_BYTES + SECRET_BYTES or stored[:head] != _SECRET_TAG:
            raise KeyMaterialError(
                "this is not a stored epoch secret",
                hint="make a new secret at the next epoch",
            )
        index = int.from_bytes(stored[head : head + _INDEX_BYTES], "big")
        return cls(teacher=index, secret=stored[head + _INDEX_BYTES :])

    def scalar(self) -> int:
        """The clamped X25519 scalar: a multiple of 8 (RFC 7748, section 5)."""
        low = int.from_bytes(hashlib.sha512(self.secret).digest()[:32], "little")
        return (low & (2**254 - 8)) | 2**254

    def exchange(self, other: EpochKey) -> bytes:
        """The raw X25519 value with another key; use `pair_secret`, which checks the indices."""
        try:
            return self._exchange.exchange(X25519PublicKey.from_public_bytes(other.public))
        except ValueError:
            raise other.fault("its point is of low order") from None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PairKeys:
    """What two teachers have in common for one epoch; both derive the same."""

    teachers: tuple[int, int]
    sealing_key: bytes
    mac_keys: tuple[bytes, bytes]

    def __repr__(self) -> str:
        return f"PairKeys(teachers={self.teachers}, <redacted>)"

    def mac_key(self, *, sender: int, receiver: int) -> bytes:
        """The key for MACs in this direction: what one sent cannot come back as the other's."""
        if (sender, receiver) == self.teachers:
            return self.mac_keys[0]
        if (receiver, sender) == self.teachers:
            return self.mac_keys[1]
        raise InputError(f"these keys are not of teachers {sender} and {receiver}")


def require_index(teacher: int) -> None:
    """Refuse an index that no teacher can have."""
    if not 1 <= teacher <= MOST_TEACHERS:
        raise InputError(f"a teacher's index is between 1 and {MOST_TEACHERS}, not {teacher}")


def require_on_curve(key: EpochKey) -> None:
    """Refuse a key on the twist, as a dispute could not prove anything about it.

    Every party runs this once for each epoch key that it receives, unless it runs
    `possession.verify_possession`, which refuses the same keys.
    """
    if not is_on_curve(decode_u(key.public)):
        raise key.fault("its point is on the twist of the curve")


def pair_secret(own: EpochSecret, other: EpochKey) -> bytes:
    """The raw X25519 secret of two teachers: computed once per epoch, shown only in a dispute."""
    if own.teacher == other.teacher:
        raise InputError(
            f"teacher {own.teacher} has no pair with itself",
            hint="use own_row_key",
        )
    return own.exchange(other)


def derive_pair_keys(shared: bytes, epoch: Epoch, one: EpochKey, other: EpochKey) -> PairKeys:
    """The keys of a pair from its X25519 secret (HKDF, RFC 5869, one block for each key).

    Both teachers run this once per epoch, and anybody in a dispute. The public keys and indices
    are bound, in the order of the indices.
    """
    if one.teacher == other.teacher:
        raise InputError(f"teacher {one.teacher} is not a pair")
    first, second = sorted((one, other), key=lambda each: each.teacher)
    extracted = hmac.digest(epoch.to_bytes(), shared, "sha256")
    bound = _PAIR_DOMAIN + first.to_bytes() + second.to_bytes()
    keys = [hmac.digest(extracted, bound + bytes((use,)), "sha256") for use in (1, 2, 3)]
    return PairKeys(
        teachers=(first.teacher, second.teacher),
        sealing_key=keys[0],
        mac_keys=(keys[1], keys[2]),
    )


def own_row_key(own: EpochSecret, epoch: Epoch) -> bytes:
    """The key under which a teacher seals its own row, so that it finds it after a restart."""
    bound = _OWN_ROW_DOMAIN + epoch.to_bytes() + own.key.to_bytes()
    return hmac.digest(own.secret, bound, "sha256")
