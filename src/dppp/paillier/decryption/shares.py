"""Decryption shares: what a teacher sends for a batch of tallies.

share_i = c^(2Δ·d_i), modulo n for a `root` key and modulo n^(s+1) for a `paper` key: equations 6
and 11 of docs/protocol.md. Δ = N! is what makes a `root` share safe (Shoup 2000). With it every
share can be computed from the root R and the colluders' shares of the key, for any c whatsoever, so
a share shows R and nothing else. Without it two colluders could factor n. Run by teachers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from gmpy2 import mpz

from dppp.errors import InputError
from dppp.paillier.arithmetic.groups import check_units
from dppp.paillier.arithmetic.modexp import power_secret
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts
from dppp.paillier.keys import (
    KEY_ID_BYTES,
    MOST_TEACHERS,
    KeyId,
    KeyShare,
    PublicKey,
    require_share_of,
)

_TAG = b"dppp decryption shares 2\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecryptionShares:
    """One teacher's shares, one for each ciphertext of a batch."""

    key_id: KeyId
    index: int
    elements: tuple[mpz, ...] = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key_id) != KEY_ID_BYTES or not 1 <= self.index <= MOST_TEACHERS:
            raise InputError("decryption shares need a key id of 32 bytes and an index from 1")

    def to_bytes(self, public: PublicKey) -> bytes:
        """The canonical encoding: the elements have the length of their modulus."""
        length = byte_length(public.share_modulus)
        return b"".join(
            (
                _TAG,
                self.key_id,
                self.index.to_bytes(2, "big"),
                len(self.elements).to_bytes(4, "big"),
                *(element.to_bytes(length, "big") for element in self.elements),
            )
        )

    @classmethod
    def from_bytes(cls, public: PublicKey, data: bytes) -> Self:
        """Read strictly; elements that are not units are refused."""
        length = byte_length(public.share_modulus)
        reader = Reader(data, tag=_TAG, kind="a message of decryption shares")
        key_id, index = KeyId(reader.take(KEY_ID_BYTES)), reader.count(2)
        elements = tuple(reader.integer(length) for _ in range(reader.count(4)))
        reader.finish()
        check_units(elements, public.modulus, public.share_modulus, what="decryption share")
        return cls(key_id=key_id, index=index, elements=elements)


def make_decryption_shares(
    public: PublicKey, key_share: KeyShare, ciphertexts: Sequence[Ciphertext]
) -> DecryptionShares:
    """A teacher's shares of every ciphertext, made on all cores.

    The teacher has decided before that these ciphertexts may be opened: that is the protocol's
    part. The key is safe whatever they are, but whoever gets t shares of one can read it.
    """
    check_ciphertexts(public, ciphertexts)
    require_share_of(public, key_share)
    # One power with the whole exponent: as cheap as two, and cheaper than a public one first.
    modulus, exponent = public.share_modulus, 2 * public.factorial * key_share.exponent
    elements = map_over_cores(
        lambda ciphertext: power_secret(ciphertext, exponent, modulus), ciphertexts
    )
    return DecryptionShares(key_id=public.key_id, index=key_share.index, elements=elements)
