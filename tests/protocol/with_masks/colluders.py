"""What colluders do: ways to change a real teacher's side, each breaking one rule."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dppp.masks.ballots import Header, digest_of_seals
from dppp.masks.dealing import (
    SALT_BYTES,
    SEED_ELEMENTS,
    Preparation,
    _centred,
    expand_root,
    root_of,
    sharing_of,
)
from dppp.masks.packing import pack_bits, unpack_blocks
from dppp.masks.parameters import FIELD
from dppp.masks.sealing import Purpose
from dppp.masks.sharing import draw_elements, elements_to_bytes
from dppp.protocol.cryptosystem import AboutList, Asked
from dppp.protocol.messages import Endorsement
from dppp.protocol.signing import Signer, sign
from dppp.protocol.wire import decode, encode, kind_of
from dppp.protocol.with_masks.deliveries import delivery_of
from dppp.protocol.with_masks.keys import RosterKeys
from dppp.protocol.with_masks.messages import (
    Complaint,
    DeliveredList,
    MaskedBallot,
    Objection,
    SealEvidence,
    SeedRows,
    ShownRoot,
    ShownRows,
)
from dppp.protocol.with_masks.teacher import MaskSide
from dppp.randomness import KeyStream, RandomSource, system_randomness

Rows = NDArray[np.uint16]
ChangeRows = Callable[[Rows], Rows]


def _same(rows: Rows) -> Rows:
    return rows


def add_to_rows(recipients: Sequence[int], amount: int = 1) -> ChangeRows:
    """Other rows than those dealt, for these recipients."""

    def change(rows: Rows) -> Rows:
        changed = rows.copy()
        for each in recipients:
            changed[each - 1] = (changed[each - 1].astype(int) + amount) % FIELD
        return changed

    return change


def set_first_element(recipient: int, value: int) -> ChangeRows:
    """What is not a field element, in one row."""

    def change(rows: Rows) -> Rows:
        changed = rows.copy()
        changed[recipient - 1, 0] = value
        return changed

    return change


def _with_broken_seal(
    ballot: MaskedBallot, purpose: Purpose, place: int, members: int
) -> MaskedBallot:
    """The ballot with one seal that does not open, and a header that covers it."""
    header = Header.from_bytes(ballot.header)
    name = "secret_seals" if purpose is Purpose.SECRET_ROW else "seed_seals"
    seals = getattr(ballot, name)
    length = len(seals) // members
    whole = [seals[at : at + length] for at in range(0, len(seals), length)]
    whole[place] = _flipped(whole[place])
    joined = b"".join(whole)
    changed = replace(header, **{f"{name}_digest": digest_of_seals(joined)})
    fields: dict[str, Any] = {name: joined, "header": changed.to_bytes()}
    return replace(ballot, **fields)


def deal_badly(
    *,
    secret_rows: ChangeRows = _same,
    seed_rows: ChangeRows = _same,
    break_seals: Sequence[tuple[int, Purpose]] = (),
    break_check_block: bool = False,
    note_root: Callable[[bytes], None] = lambda _: None,
    randomness: RandomSource = system_randomness,
) -> Callable[[MaskSide], None]:
    """A dealer that deals other rows, seals that do not open, or a block that hides no secret."""

    def change(side: MaskSide) -> None:
        def prepare(roster: RosterKeys) -> Preparation:
            parameters, keys = side._parameters, roster.as_dealer()
            salt = randomness(SALT_BYTES)
            note_root(root_of(keys.own_key, salt))
            dealing = expand_root(parameters, keys.epoch, root_of(keys.own_key, salt))
            if break_check_block:
                dealing = replace(dealing, check_block=_shifted(side, dealing.check_block))
            stream = KeyStream(randomness(32))
            elements = draw_elements(SEED_ELEMENTS, stream)
            seed = elements_to_bytes(elements)
            dealt = sharing_of(parameters).deal(_centred(elements), stream)
            return Preparation(
                keys=keys,
                salt=salt,
                dealing=replace(dealing, rows=secret_rows(dealing.rows)),
                seed=seed,
                seed_rows=seed_rows(dealt),
            )

        honest_cast = side.cast

        def cast(asked: Asked, entries: NDArray[np.int64]) -> bytes:
            ballot = decode(honest_cast(asked, entries), MaskedBallot)
            roster = side._ring.roster(ballot.roster_hash)
            for recipient, purpose in break_seals:
                if recipient not in roster.members:
                    continue  # it was left out
                place = roster.members.index(recipient)
                ballot = _with_broken_seal(ballot, purpose, place, len(roster.members))
            return encode(sign(ballot, side._desk.signer))

        side.cast = cast  # type: ignore[method-assign]
        side._prepare = prepare  # type: ignore[method-assign]

    return change


def _flipped(data: bytes) -> bytes:
    return bytes([data[0] ^ 1]) + data[1:]


def _shifted(side: MaskSide, block: bytes) -> bytes:
    """A block with one large error: no short secret opens it."""
    parameters = side._parameters
    words = unpack_blocks(block, blocks=1, degree=parameters.degree, bits=parameters.modulus_bits)
    words[0, 0] = (int(words[0, 0]) + (1 << (parameters.modulus_bits - 1))) % (
        1 << parameters.modulus_bits
    )
    return pack_bits(words, parameters.modulus_bits)


def endorse_another_sum(side: MaskSide) -> None:
    """An endorser that adds one to its sum of rows."""
    honest = side.endorse

    def endorse(listed: AboutList, own_ballot: bytes) -> bytes:
        said = decode(honest(listed, own_ballot), Endorsement)
        first = (int.from_bytes(said.content[:2], "little") + 1) % FIELD
        changed = replace(said, content=first.to_bytes(2, "little") + said.content[2:])
        return encode(sign(changed, side._desk.signer))

    side.endorse = endorse  # type: ignore[method-assign]


Answer = Callable[[bytes, bytes | None], list[bytes]]


def honest(_asked: bytes, answer: bytes | None) -> list[bytes]:
    return [] if answer is None else [answer]


def silent_about(*kinds: str) -> Answer:
    """No answer to these kinds of message."""

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        return [] if kind_of(asked) in kinds else honest(asked, said)

    return answer


def objecting_to(
    dealer: int, own: int, signer: Signer, *, purpose: int = 1, then: Answer = honest
) -> Answer:
    """An objection about a good seal in the place of an endorsement; then whatever is given."""

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if kind_of(asked) != DeliveredList.KIND:
            return then(asked, said)
        about = decode(asked, DeliveredList)
        unsigned = Objection(
            task_id=about.task_id,
            batch_id=about.batch_id,
            attempt=about.attempt,
            teacher=own,
            list_hash=about.list_hash,
            delivery=delivery_of(about),
            purpose=purpose,
            dealers=(dealer,),
        )
        return [encode(sign(unsigned, signer))]

    return answer


def complaining(
    own: int, signer: Signer, prove: Callable[[SealEvidence], tuple[bytes, bytes]]
) -> Answer:
    """A complaint about whatever evidence comes, with this secret of the pair and proof."""

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if kind_of(asked) != SealEvidence.KIND:
            return honest(asked, said)
        evidence = decode(asked, SealEvidence)
        secret, proof = prove(evidence)
        unsigned = Complaint(
            task_id=evidence.task_id,
            batch_id=evidence.batch_id,
            attempt=evidence.attempt,
            teacher=own,
            dealer=evidence.dealer,
            purpose=evidence.purpose,
            pair_secret=secret,
            proof=proof,
        )
        return [encode(sign(unsigned, signer))]

    return answer


def showing_another_root(signer: Signer) -> Answer:
    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or kind_of(said) != ShownRoot.KIND:
            return honest(asked, said)
        shown = decode(said, ShownRoot)
        return [encode(sign(replace(shown, root=_flipped(shown.root)), signer))]

    return answer


def showing_other_rows(signer: Signer) -> Answer:
    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or kind_of(said) != ShownRows.KIND:
            return honest(asked, said)
        shown = decode(said, ShownRows)
        return [encode(sign(replace(shown, rows=_flipped(shown.rows)), signer))]

    return answer


def giving_other_seed_rows(
    signer: Signer, places: Sequence[int], *, row_bytes: int, then: Answer = honest
) -> Answer:
    """Rows of the seeds at these places of the list, each with another first element."""

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or kind_of(said) != SeedRows.KIND:
            return then(asked, said)
        given = decode(said, SeedRows)
        rows = bytearray(given.rows)
        for place in places:
            at = place * row_bytes
            changed = (int.from_bytes(rows[at : at + 2], "little") + 1) % FIELD
            rows[at : at + 2] = changed.to_bytes(2, "little")
        return [encode(sign(replace(given, rows=bytes(rows)), signer))]

    return answer


def replacing_seed_rows(signer: Signer) -> Answer:
    """Rows of seeds in which every element that is not of the field is 0."""

    def answer(asked: bytes, said: bytes | None) -> list[bytes]:
        if said is None or kind_of(said) != SeedRows.KIND:
            return honest(asked, said)
        given = decode(said, SeedRows)
        elements = np.frombuffer(given.rows, dtype="<u2").copy()
        elements[elements >= FIELD] = 0
        return [encode(sign(replace(given, rows=elements.tobytes()), signer))]

    return answer
