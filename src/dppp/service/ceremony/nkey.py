"""nkeys: the Ed25519 keys by which a NATS server knows who is who.

A seed ("SU…") stays in its home; the public key ("U…") is in the federation file and in the
server's configuration. At a connection the client signs what the server drew, so no secret travels.
"""

import base64
import binascii

import nkeys

from dppp.errors import FederationError
from dppp.randomness import RandomSource, system_randomness

_LENGTH = 56


def make_seed(randomness: RandomSource = system_randomness) -> str:
    """A new seed of a NATS user."""
    seed: bytes = nkeys.encode_seed(randomness(32), nkeys.PREFIX_BYTE_USER)
    return seed.decode("ascii")


def public_nkey(seed: str) -> str:
    """The public key of a seed; nkeys reads a mistyped one too, so its checksum is checked here.

    An error repeats nothing of a seed, nor what nkeys says about it.
    """
    try:
        given = seed.encode("ascii")
        _, raw = nkeys.decode_seed(given)
        is_seed = nkeys.encode_seed(raw, nkeys.PREFIX_BYTE_USER) == given
    except (nkeys.NkeysError, ValueError):
        is_seed = False
    if not is_seed:
        raise FederationError(
            "this is not the seed of a NATS user",
            hint="restore it from its copy, or join again with a new home",
        )
    public: bytes = nkeys.from_seed(given).public_key
    return public.decode("ascii")


def require_nkey(text: str) -> None:
    """Refuse what is not the public nkey of a user, its checksum included."""
    try:
        raw = base64.b32decode(text.encode("ascii"))
    except (binascii.Error, ValueError):
        raw = b""
    is_user = len(text) == _LENGTH and raw[:1] == bytes((nkeys.PREFIX_BYTE_USER,))
    if not is_user or nkeys.crc16(bytearray(raw[:-2])).to_bytes(2, "little") != raw[-2:]:
        raise FederationError(
            f"{text[:60]!r} is not the public nkey of a NATS user; it has {_LENGTH} letters and "
            "digits and begins with U"
        )
