"""Every exception that dppp raises on purpose.

The text of each says what was wrong, what was expected and what to do next. The class says whose
fault it was: ``InputError`` is the caller's, ``Refusal`` is a rule that holds, ``PeerFault`` is
another party's and names the culprits. The command line turns the first into exit code 2 and the
others into exit code 1.
"""


class DpppError(Exception):
    """Anything that dppp raises on purpose."""


class InputError(DpppError):
    """A value that the caller gave cannot be used; nothing was done."""


class UncertifiedError(DpppError):
    """No noise of this family keeps the promise, or a certificate does not hold."""


class MissingExtraError(DpppError):
    """An optional package is needed; the text names the extra to install."""


class Refusal(DpppError):  # noqa: N818 - a refusal is not an error of ours
    """A party declined to act because a rule of the protocol forbids it."""


class PeerFault(DpppError):  # noqa: N818 - theirs, not ours
    """Another party broke the protocol."""

    def __init__(self, message: str, *, culprits: tuple[int, ...] = ()) -> None:
        super().__init__(message)
        self.culprits = culprits


class EncodingError(InputError):
    """Bytes that are not the canonical encoding of what they should be."""


class KeyMaterialError(InputError):
    """A key, a share of one or its file cannot be used: weak, damaged, foreign or locked."""


class GroupElementError(InputError):
    """An integer that should be an element of the key's group is not."""

    def __init__(self, message: str, *, position: int = 0) -> None:
        super().__init__(message)
        self.position = position


class PackingError(InputError):
    """A slot of a packed plaintext is outside its bound; `slot` is its position."""

    def __init__(self, message: str, *, slot: int) -> None:
        super().__init__(message)
        self.slot = slot


class ProofError(PeerFault):
    """A proof does not hold."""


class DecryptionError(PeerFault):
    """Decryption shares do not open the ciphertexts."""


class WeakModulusWarning(UserWarning):
    """The modulus is too short for anything but reproducing the paper."""
