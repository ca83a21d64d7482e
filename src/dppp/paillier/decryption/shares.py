"""Decryption shares: what a teacher sends for a batch of tallies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

from gmpy2 import mpz

from dppp.errors import InputError
from dppp.paillier.decryption import paper, root
from dppp.paillier.encoding import Reader, byte_length
from dppp.paillier.encryption import Ciphertext, check_ciphertexts
from dppp.paillier.groups import check_absolute_elements
from dppp.paillier.keys import (
    KEY_ID_BYTES,
    MOST_TEACHERS,
    Decryption,
    KeyId,
    KeyShare,
    PublicKey,
    raised_exponent,
)
from dppp.paillier.parallel import map_over_cores

_TAG = b"dppp decryption shares 1\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecryptionShares:
    """One teacher's shares, one for each ciphertext of a batch, each up to sign."""

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
        """Read strictly; elements outside the group are refused."""
        length = byte_length(public.share_modulus)
        reader = Reader(data, tag=_TAG, kind="a message of decryption shares")
        key_id, index = KeyId(reader.take(KEY_ID_BYTES)), reader.count(2)
        elements = tuple(reader.integer(length) for _ in range(reader.count(4)))
        reader.finish()
        check_absolute_elements(
            elements, public.modulus, public.share_modulus, what="decryption share"
        )
        return cls(key_id=key_id, index=index, elements=elements)


def make_decryption_shares(
    public: PublicKey, key_share: KeyShare, ciphertexts: Sequence[Ciphertext]
) -> DecryptionShares:
    """A teacher's shares of every ciphertext, made on all cores.

    The teacher has decided before that these ciphertexts may be opened: that is the protocol's
    part, and the key depends on it. Each ciphertext must contain a ballot that this teacher made
    itself with a fresh blinding, and no ballot may be opened in two tallies: otherwise colluders
    who hold key shares can factor the modulus (docs/protocol.md, section 7).
    """
    check_ciphertexts(public, ciphertexts)
    exponent = raised_exponent(public, key_share)
    way = root if public.decryption == Decryption.ROOT else paper
    elements = map_over_cores(
        lambda ciphertext: way.make_share(public, exponent, ciphertext), ciphertexts
    )
    return DecryptionShares(key_id=public.key_id, index=key_share.index, elements=elements)
