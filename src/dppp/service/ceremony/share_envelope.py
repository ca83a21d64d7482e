"""A key share sealed to one teacher's X25519 key by HPKE (RFC 9180): bytes to bytes.

Used by the dealer (`dppp keys deal`) to seal and by a teacher's home to open. The suite is X25519,
HKDF-SHA256 and ChaCha20-Poly1305 in base mode, which binds the teacher's public key by itself. The
header (version, task id, index) goes in as HPKE's `info`, so a share opens only as what it says it
is. It is bound to the task and not to the federation file, so that TLS certificates can be renewed
without dealing again.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from dppp.errors import EncodingError, KeyMaterialError
from dppp.hashing import HASH_BYTES
from dppp.paillier.encoding import Reader
from dppp.paillier.keys import KeyShare
from dppp.protocol.messages import TaskId

TAG = b"dppp share envelope 2\n"
_OLD_TAG = b"dppp share envelope 1\n"
"""Before 0.2.0: an envelope of our own instead of HPKE."""
_HEADER_BYTES = len(TAG) + HASH_BYTES + 2
_SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


def seal_to(recipient: bytes, share: KeyShare, task_id: TaskId) -> bytes:
    """Seal a share to a teacher's public sealing key. Run by the dealer."""
    header = b"".join((TAG, task_id, share.index.to_bytes(2, "big")))
    try:
        key = X25519PublicKey.from_public_bytes(recipient)
        return header + _SUITE.encrypt(share.to_bytes(), key, info=header)
    except ValueError:
        raise KeyMaterialError(
            f"the sealing key of teacher {share.index} is not an X25519 key",
            hint="have it made with `dppp join`",
        ) from None


def unseal_from(data: bytes, key: X25519PrivateKey, task_id: TaskId) -> KeyShare:
    """Open the envelope with the teacher's own key. Run by a teacher."""
    found, index = read_envelope_header(data)
    if found != task_id:
        raise KeyMaterialError(
            "this share was dealt for another federation",
            hint="take the one that came with this federation file",
        )
    header, sealed = data[:_HEADER_BYTES], data[_HEADER_BYTES:]
    try:
        opened = _SUITE.decrypt(sealed, key, info=header)
    except (InvalidTag, ValueError):
        raise KeyMaterialError(
            f"this share, of teacher {index}, does not open with the sealing key of this home: it "
            "is somebody else's or damaged",
            hint="ask the dealer for yours again",
        ) from None
    share = KeyShare.from_bytes(opened)
    if share.index != index:
        raise KeyMaterialError(
            "the share is not the one its envelope names", hint="ask for it again"
        )
    return share


def read_envelope_header(data: bytes) -> tuple[TaskId, int]:
    """Task and index; not authenticated until the envelope is opened."""
    if data.startswith(_OLD_TAG):
        raise KeyMaterialError(
            "this share was sealed by a dppp before 0.2.0, which this one does not open",
            hint="have the key dealt again with this version",
        )
    try:
        reader = Reader(data, tag=TAG, kind="a share envelope")
        return TaskId(reader.take(HASH_BYTES)), reader.count(2)
    except EncodingError as error:
        raise KeyMaterialError(
            f"this is not a share from `dppp keys deal`: {error.message}", hint=error.hint
        ) from error
