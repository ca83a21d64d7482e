"""Who is at fault when a list does not open, from evidence that everybody can check.

No evidence here tells anything about an honest teacher's vote. Roots are shown only when t teachers
have said that they will never open the batch: then every pad stays on. A shown seal tells its own
row only. The secret of a pair is shown only by one of the two who says that a seal of the other
does not open: one of them is dishonest and knows it already, if it proved possession of its key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from dppp.errors import InputError, ProofError, SealUnopened
from dppp.masks.ballots import Header
from dppp.masks.dealing import (
    ROOT_BYTES,
    Dealing,
    digest_of_check_block,
    expand_root,
    seal_contexts,
    secret_row_bytes,
    seed_row_bytes,
)
from dppp.masks.epoch_keys import Epoch, EpochKey, derive_pair_keys
from dppp.masks.equal_logarithms import verify_pair_secret
from dppp.masks.parameters import Parameters
from dppp.masks.sealing import Purpose, ShownSeal, open_one, read_shown
from dppp.masks.sharing import add_rows, elements_from_bytes, elements_to_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedRow:
    """One seal: whose, to whom, of which kind, and what it is bound to. Its dealer signed it.

    `votes_seed` is that of the batch and attempt in which the seal was delivered, and `head_digest`
    of its dealer's header.
    """

    epoch: Epoch
    votes_seed: bytes
    dealer: int
    recipient: int
    purpose: Purpose
    head_digest: bytes
    sealed: bytes

    @property
    def context(self) -> bytes:
        """What the seal is bound to."""
        return seal_contexts(self.epoch, self.votes_seed, [self.head_digest])[0]


def row_bytes(parameters: Parameters, purpose: Purpose) -> int:
    """The length of a row of this kind."""
    of_secret = purpose is Purpose.SECRET_ROW
    return secret_row_bytes(parameters) if of_secret else seed_row_bytes(parameters)


def is_row(row: bytes) -> bool:
    """Whether these bytes are field elements, as a dealer must seal them."""
    try:
        elements_from_bytes(row, len(row) // 2)
    except InputError:
        return False
    return True


def recompute_dealing(parameters: Parameters, epoch: Epoch, header: Header, root: bytes) -> Dealing:
    """What a dealer dealt by the root that it shows; a root that gives another block 0 is a lie."""
    if len(root) != ROOT_BYTES:
        raise ProofError("a root has 32 bytes")
    dealing = expand_root(parameters, epoch, root)
    if digest_of_check_block(dealing.check_block) != header.check_digest:
        raise ProofError("its root does not give the check block that it sent")
    return dealing


def find_wrong_sums(
    dealings: Mapping[int, Dealing], endorsed: Mapping[int, bytes]
) -> tuple[int, ...]:
    """Endorsers whose sums of rows are not those of the roots.

    Each of them may still show that some dealer sealed another row to it than its root gives.
    """
    every = np.stack([dealing.rows for dealing in dealings.values()])
    return tuple(
        index
        for index, said in sorted(endorsed.items())
        if elements_to_bytes(add_rows(every[:, index - 1])) != said
    )


def is_other_row(dealing: Dealing, seal: SealedRow, shown: ShownSeal) -> bool:
    """Whether a shown seal holds another row of the secret than its dealer's root gives."""
    row = read_shown_row(seal, shown)
    return row != elements_to_bytes(dealing.rows[seal.recipient - 1])


def read_shown_row(seal: SealedRow, shown: ShownSeal) -> bytes:
    """The row in a seal, as its recipient shows it; what does not fit is held against that one."""
    return read_shown(
        shown,
        seal.sealed,
        purpose=seal.purpose,
        dealer=seal.dealer,
        recipient=seal.recipient,
        context=seal.context,
    )


def judge_complaint(
    parameters: Parameters,
    seal: SealedRow,
    keys: Mapping[int, EpochKey],
    *,
    pair_secret: bytes,
    proof: bytes,
) -> int:
    """Who is at fault where a recipient says that a seal does not open: dealer or recipient.

    Whoever calls this has checked two signatures: the dealer's on the bytes of the seal, and the
    recipient's on a complaint about just this seal. The proof is bound to the epoch only, so that
    without the second somebody else could say it again about a good seal.
    """
    complainer, dealer = keys[seal.recipient], keys[seal.dealer]
    try:
        verify_pair_secret(complainer, dealer, pair_secret, seal.epoch.to_bytes(), proof)
    except ProofError:
        return seal.recipient
    pair = derive_pair_keys(pair_secret, seal.epoch, complainer, dealer)
    length = row_bytes(parameters, seal.purpose)
    is_good = opens_to_row(pair.sealing_key, seal, length=length)
    return seal.recipient if is_good else seal.dealer


def opens_to_row(key: bytes, seal: SealedRow, *, length: int) -> bool:
    """Whether a seal opens under its key, to field elements."""
    try:
        row = open_one(
            key,
            seal.sealed,
            purpose=seal.purpose,
            dealer=seal.dealer,
            recipient=seal.recipient,
            context=seal.context,
            length=length,
        )
    except SealUnopened:
        return False
    return is_row(row)
