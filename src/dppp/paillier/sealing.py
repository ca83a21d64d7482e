"""A key share encrypted under a passphrase or the contents of a key file: bytes to bytes.

scrypt makes the key, AES-256-GCM encrypts, and the header (version, cost, salt, nonce, key id,
index) is authenticated with it. Writing the file, with mode 0600, is the command line's part.
"""

from dataclasses import dataclass

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from dppp.errors import EncodingError, KeyMaterialError
from dppp.paillier.encoding import Reader
from dppp.paillier.keys import KEY_ID_BYTES, KeyId, KeyShare, refuse_version_1
from dppp.randomness import RandomSource, system_randomness

SHORTEST_SECRET_BYTES = 8
DEFAULT_COST_LOG2 = 17
# Less is too cheap to guess against; more would let a forged file exhaust our memory.
_COSTS_LOG2 = range(14, 21)
_TAG = b"dppp sealed share 2\n"
_SALT_BYTES = 16
_NONCE_BYTES = 12
_HEADER_BYTES = len(_TAG) + 1 + _SALT_BYTES + _NONCE_BYTES + KEY_ID_BYTES + 2
_SCRYPT_BLOCK_SIZE = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedHeader:
    """What can be read of a sealed share without its passphrase."""

    cost_log2: int
    salt: bytes
    nonce: bytes
    key_id: KeyId
    index: int


def seal_share(
    share: KeyShare,
    secret: bytes,
    *,
    cost_log2: int = DEFAULT_COST_LOG2,
    random_bytes: RandomSource = system_randomness,
) -> bytes:
    """Encrypt a share under `secret`, a passphrase or the contents of a key file."""
    check_secret(secret)
    if cost_log2 not in _COSTS_LOG2:
        raise KeyMaterialError(f"scrypt's cost 2^{cost_log2} is outside 2^14 to 2^20")
    salt, nonce = random_bytes(_SALT_BYTES), random_bytes(_NONCE_BYTES)
    index = share.index.to_bytes(2, "big")
    header = b"".join((_TAG, bytes((cost_log2,)), salt, nonce, share.key_id, index))
    return header + _cipher(secret, salt, cost_log2).encrypt(nonce, share.to_bytes(), header)


def check_secret(secret: bytes) -> None:
    """Refuse a passphrase or key file that is too short."""
    if len(secret) < SHORTEST_SECRET_BYTES:
        raise KeyMaterialError(
            f"the passphrase or key file has fewer than {SHORTEST_SECRET_BYTES} bytes",
            hint="choose a longer one",
        )


def unseal_share(data: bytes, secret: bytes) -> KeyShare:
    """Decrypt what `seal_share` made."""
    header = read_header(data)
    cipher = _cipher(secret, header.salt, header.cost_log2)
    try:
        opened = cipher.decrypt(header.nonce, data[_HEADER_BYTES:], data[:_HEADER_BYTES])
    except InvalidTag:
        raise KeyMaterialError(
            "the sealed share does not open: the passphrase is wrong or the file is damaged",
            hint="try the passphrase again, or ask for the share again",
        ) from None
    share = KeyShare.from_bytes(opened)
    if (share.key_id, share.index) != (header.key_id, header.index):
        raise KeyMaterialError(
            "the sealed share is not the one its header names", hint="ask for it again"
        )
    return share


def read_header(data: bytes) -> SealedHeader:
    """The header of a sealed share; unauthenticated until the share is opened."""
    refuse_version_1(data, tag=_TAG, kind="sealed share")
    try:
        reader = Reader(data, tag=_TAG, kind="a sealed share")
        header = SealedHeader(
            cost_log2=reader.count(1),
            salt=reader.take(_SALT_BYTES),
            nonce=reader.take(_NONCE_BYTES),
            key_id=KeyId(reader.take(KEY_ID_BYTES)),
            index=reader.count(2),
        )
    except EncodingError as error:
        raise KeyMaterialError(
            f"this is not a sealed share that can be read: {error.message}", hint=error.hint
        ) from error
    if header.cost_log2 not in _COSTS_LOG2:
        raise KeyMaterialError("the sealed share asks for a cost outside 2^14 to 2^20; refuse it")
    return header


def _cipher(secret: bytes, salt: bytes, cost_log2: int) -> AESGCM:
    scrypt = Scrypt(salt=salt, length=32, n=1 << cost_log2, r=_SCRYPT_BLOCK_SIZE, p=1)
    return AESGCM(scrypt.derive(secret))
