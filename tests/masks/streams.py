"""Fixed streams of bytes for tests of masks."""

from collections.abc import Callable

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes


def fixed_stream(seed: int) -> Callable[[int], bytes]:
    """The AES-256-CTR key stream of a number, read on from call to call."""
    encryptor = Cipher(algorithms.AES256(seed.to_bytes(32)), modes.CTR(bytes(16))).encryptor()
    return lambda count: encryptor.update(bytes(count))
