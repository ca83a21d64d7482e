"""A key share sealed to one teacher's X25519 key: bytes to bytes.

The dealer draws a key pair for each envelope, agrees with the teacher's public key, derives a key
by HKDF-SHA256 over everything public (both keys, task, index), and encrypts by ChaCha20-Poly1305.
As each key encrypts once, the nonce is zero. The header is authenticated: version, task id, index
and the drawn key. Bound to the task and not to the federation file, so that certificates can be
renewed without dealing anew.
"""

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from dppp.errors import EncodingError, KeyMaterialError
from dppp.paillier.encoding import Reader
from dppp.paillier.keys import KeyShare
from dppp.protocol.messages import HASH_BYTES, TaskId, hash_parts

TAG = b"dppp share envelope 1\n"
_KEY_BYTES = 32
_HEADER_BYTES = len(TAG) + HASH_BYTES + 2 + _KEY_BYTES
_NONCE = bytes(12)


def seal_to(recipient: bytes, share: KeyShare, task_id: TaskId) -> bytes:
    """Seal a share to a teacher's public sealing key. Run by the dealer."""
    drawn = X25519PrivateKey.generate()
    header = b"".join(
        (TAG, task_id, share.index.to_bytes(2, "big"), drawn.public_key().public_bytes_raw())
    )
    try:
        agreed = drawn.exchange(X25519PublicKey.from_public_bytes(recipient))
    except ValueError:
        raise KeyMaterialError(
            f"the sealing key of teacher {share.index} is no key; have it made with `dppp join`"
        ) from None
    return header + _cipher(agreed, header, recipient).encrypt(_NONCE, share.to_bytes(), header)


def unseal_from(data: bytes, key: X25519PrivateKey, task_id: TaskId) -> KeyShare:
    """Open the envelope with the teacher's own key; what cannot be opened says what to do."""
    found, index, drawn = read_envelope_header(data)
    if found != task_id:
        raise KeyMaterialError(
            "this share was dealt for another federation; take the one that came with this "
            "federation file"
        )
    header, recipient = data[:_HEADER_BYTES], key.public_key().public_bytes_raw()
    try:
        agreed = key.exchange(X25519PublicKey.from_public_bytes(drawn))
        opened = _cipher(agreed, header, recipient).decrypt(_NONCE, data[_HEADER_BYTES:], header)
    except (InvalidTag, ValueError):
        raise KeyMaterialError(
            f"this share, of teacher {index}, does not open with the sealing key of this home: it "
            "is somebody else's or damaged; ask the dealer for yours again"
        ) from None
    share = KeyShare.from_bytes(opened)
    if share.index != index:
        raise KeyMaterialError("the share is not the one its envelope names; ask for it again")
    return share


def read_envelope_header(data: bytes) -> tuple[TaskId, int, bytes]:
    """Task, index and drawn key; unauthenticated until the envelope is opened."""
    try:
        reader = Reader(data, tag=TAG, kind="a share envelope")
        return TaskId(reader.take(HASH_BYTES)), reader.count(2), reader.take(_KEY_BYTES)
    except EncodingError as error:
        raise KeyMaterialError(f"this is no share from `dppp keys deal`: {error}") from error


def _cipher(agreed: bytes, header: bytes, recipient: bytes) -> ChaCha20Poly1305:
    info = hash_parts("dppp share envelope key 1", (header, recipient))
    derived = HKDF(algorithm=hashes.SHA256(), length=32, salt=None, info=info).derive(agreed)
    return ChaCha20Poly1305(derived)
