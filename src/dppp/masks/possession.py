"""Proof that a teacher knows the secret of the epoch key that it publishes.

Without it, disputes would leak. A colluder could publish the key U of an honest teacher, or r·U,
as its own, and seal rubbish to all others. Each of them complains and shows x·U, as it must: that
is its secret with the honest teacher, under which all rows between the two are sealed. Whoever
knows the logarithm of its key learns nothing from x·U that it could not compute.

The proof is an Ed25519 signature (RFC 8032), which is Schnorr's proof of knowledge of a logarithm,
under the Edwards form of the epoch key itself, on the epoch, the teacher and the key. The long-term
signature on an epoch key does not replace it: that says who publishes the key, not who knows it.
"""

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from dppp.errors import GroupElementError
from dppp.masks.curve25519 import ENCODED_BYTES, decode_u, edwards_y
from dppp.masks.epoch_keys import Epoch, EpochKey, EpochSecret

POSSESSION_BYTES = 65
_DOMAIN = b"dppp possession of an epoch key 1"


def is_odd_half(own: EpochSecret) -> bool:
    """Is the Edwards x-coordinate of the teacher's public point odd? The u-coordinate hides it."""
    signing = Ed25519PrivateKey.from_private_bytes(own.secret)
    return bool(signing.public_key().public_bytes_raw()[-1] >> 7)


def prove_possession(own: EpochSecret, epoch: Epoch) -> bytes:
    """A teacher's proof for the key that it publishes, once per epoch: sign byte and signature."""
    signing = Ed25519PrivateKey.from_private_bytes(own.secret)
    return bytes((is_odd_half(own),)) + signing.sign(_statement(own.key, epoch))


def verify_possession(key: EpochKey, epoch: Epoch, proof: bytes) -> None:
    """Raise, naming the teacher, unless it knows the logarithm of its key.

    Every party runs this once for each epoch key. It refuses points on the twist as well: they
    have no Edwards form, and a signature under what cannot be decoded is invalid (RFC 8032, 5.1.7).
    """
    if len(proof) != POSSESSION_BYTES or proof[0] > 1:
        raise key.fault("its proof of possession is malformed")
    try:
        encoded = edwards_y(decode_u(key.public)) | proof[0] << 255
        verifying = Ed25519PublicKey.from_public_bytes(encoded.to_bytes(ENCODED_BYTES, "little"))
        verifying.verify(proof[1:], _statement(key, epoch))
    except (GroupElementError, InvalidSignature):
        raise key.fault("its proof of possession does not hold") from None


def _statement(key: EpochKey, epoch: Epoch) -> bytes:
    return _DOMAIN + epoch.to_bytes() + key.to_bytes()
