"""Makes masks_rounds.json from fixed randomness: `python tests/vectors/make_masks_rounds.py`.

The good vector is a whole round: five teachers, of whom the third dropped out, from their epoch
secrets to the counts. `randomness` is what a teacher draws: salt, key of its seed's stream, key of
its errors' stream. A bad one names the operation, what is changed in the good one for it, and the
exception that it must cause. All bytes are in hexadecimal; of what is long there is the SHA-256.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.masks.seals import open_many

from dppp.masks.ballots import Body, Header, cast, seal_at
from dppp.masks.blame import SealedRow, row_bytes
from dppp.masks.dealing import DealerKeys, prepare, root_of
from dppp.masks.epoch_keys import Epoch, EpochSecret, derive_pair_keys, own_row_key, pair_secret
from dppp.masks.opening import (
    add_blocks,
    add_votes,
    open_counts,
    recover_secret,
    recover_seeds,
    require_fits,
    secret_to_bytes,
)
from dppp.masks.packing import pack_bits
from dppp.masks.parameters import FIELD, Parameters, choose_parameters
from dppp.masks.sealing import Purpose, show_seal
from dppp.masks.sharing import add_rows, elements_to_bytes

VECTORS = Path(__file__).with_name("masks_rounds.json")
PRESENT = (1, 2, 4, 5)
COUNTS = 30
TRUST = {"teachers": 5, "colluders": 0, "dropouts": 1, "largest_sum": 2000, "counts": COUNTS}


def fixed(name: str, count: int) -> bytes:
    """Bytes that are the same in every run."""
    return hashlib.shake_256(f"masks rounds vectors: {name}".encode()).digest(count)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def parameters() -> Parameters:
    return choose_parameters(**TRUST)


def epoch() -> Epoch:
    return Epoch(task_id=fixed("task", 32), number=3)


def votes_seed() -> bytes:
    return fixed("batch and attempt", 32)


def secret_of(teacher: int) -> EpochSecret:
    return EpochSecret(teacher=teacher, secret=fixed(f"epoch secret {teacher}", 32))


def randomness_of(teacher: int) -> list[bytes]:
    return [fixed(f"{name} {teacher}", 32) for name in ("salt", "seed", "errors")]


def entries_of(teacher: int) -> NDArray[np.int64]:
    drawn = np.frombuffer(fixed(f"entries {teacher}", 2 * COUNTS), dtype="<u2")
    return (drawn % 400).astype(np.int64)


def sealing_key(one: int, other: int) -> bytes:
    own, peer = secret_of(one), secret_of(other)
    if one == other:
        return own_row_key(own, epoch())
    shared = pair_secret(own, peer.key)
    return derive_pair_keys(shared, epoch(), own.key, peer.key).sealing_key


def ballot_of(teacher: int) -> tuple[Header, Body]:
    """What a teacher casts."""
    drawn = iter(randomness_of(teacher))
    keys = DealerKeys(
        epoch=epoch(),
        dealer=teacher,
        own_key=own_row_key(secret_of(teacher), epoch()),
        recipients=PRESENT,
        sealing_keys=tuple(sealing_key(teacher, each) for each in PRESENT),
    )
    prepared = prepare(parameters(), keys, lambda _: next(drawn))
    return cast(
        parameters(),
        prepared,
        entries_of(teacher),
        votes_seed=votes_seed(),
        randomness=lambda _: next(drawn),
    )


Ballots = dict[int, tuple[Header, Body]]


def seal_of(ballots: Ballots, dealer: int, recipient: int, purpose: Purpose) -> SealedRow:
    header, body = ballots[dealer]
    seals = body.secret_seals if purpose is Purpose.SECRET_ROW else body.seed_seals
    return SealedRow(
        epoch=epoch(),
        votes_seed=votes_seed(),
        dealer=dealer,
        recipient=recipient,
        purpose=purpose,
        head_digest=header.head_digest,
        sealed=seal_at(seals, PRESENT.index(recipient), len(PRESENT)),
    )


def rows_of(ballots: Ballots, recipient: int, purpose: Purpose) -> NDArray[np.uint8]:
    """What one teacher opens of all dealers' seals."""
    seals = [seal_of(ballots, dealer, recipient, purpose) for dealer in PRESENT]
    return open_many(
        [sealing_key(recipient, dealer) for dealer in PRESENT],
        [seal.sealed for seal in seals],
        purpose=purpose,
        dealers=PRESENT,
        recipient=recipient,
        contexts=[seal.context for seal in seals],
        length=row_bytes(parameters(), purpose),
    )


def endorsement_of(ballots: Ballots, recipient: int) -> bytes:
    rows = rows_of(ballots, recipient, Purpose.SECRET_ROW)
    return elements_to_bytes(add_rows(rows.view("<u2").astype(np.uint16)))


def answer_of(ballots: Ballots, recipient: int) -> list[bytes]:
    return [row.tobytes() for row in rows_of(ballots, recipient, Purpose.SEED_ROW)]


def good_vector() -> dict[str, Any]:
    """A whole round."""
    ballots = {each: ballot_of(each) for each in PRESENT}
    ring = parameters()
    named = ("degree", "modulus_bits", "slot_bits", "slots_per_coefficient", "scale_bits")
    derived = ("threshold", "rows_needed", "packed")
    return {
        "trust": TRUST,
        "parameters": {name: getattr(ring, name) for name in (*named, *derived)},
        "task_id": epoch().task_id.hex(),
        "epoch": epoch().number,
        "votes_seed": votes_seed().hex(),
        "present": list(PRESENT),
        "teachers": {str(each): teacher_vector(each, ballots) for each in PRESENT},
        **opened_vector(ballots),
    }


def teacher_vector(teacher: int, ballots: Ballots) -> dict[str, Any]:
    """What one teacher has, sends, endorses and answers."""
    header, body = ballots[teacher]
    own = secret_of(teacher)
    seal = seal_of(ballots, teacher, PRESENT[0], Purpose.SEED_ROW)
    return {
        "epoch_secret": own.secret.hex(),
        "randomness": [each.hex() for each in randomness_of(teacher)],
        "root": root_of(own_row_key(own, epoch()), header.salt).hex(),
        "entries": entries_of(teacher).tolist(),
        "header": header.to_bytes().hex(),
        "seal_context": seal.context.hex(),
        "check_block_sha256": digest(body.check_block),
        "votes_sha256": digest(body.votes),
        "secret_seals_sha256": digest(body.secret_seals),
        "seed_seals": body.seed_seals.hex(),
        "endorsed_sum": endorsement_of(ballots, teacher).hex(),
        "answer": [each.hex() for each in answer_of(ballots, teacher)],
        "shown_seed_seal": shown_vector(ballots, teacher),
    }


def shown_vector(ballots: Ballots, recipient: int) -> dict[str, str]:
    """What a teacher would show of the seal of teacher 1's seed row."""
    seal = seal_of(ballots, PRESENT[0], recipient, Purpose.SEED_ROW)
    shown = show_seal(
        sealing_key(recipient, PRESENT[0]),
        seal.sealed,
        purpose=seal.purpose,
        dealer=seal.dealer,
        recipient=recipient,
        context=seal.context,
        length=row_bytes(parameters(), seal.purpose),
    )
    return {"tag_key": shown.tag_key.hex(), "row": shown.row.hex()}


def opened_vector(ballots: Ballots) -> dict[str, Any]:
    """What everybody has when the list is open."""
    ring = parameters()
    secret = recover_secret(ring, {each: endorsement_of(ballots, each) for each in PRESENT})
    check_sum = add_blocks(ring, [body.check_block for _, body in ballots.values()], count=1)
    short = require_fits(ring, epoch(), check_sum[0], secret)
    digests = [header.seed_digest for header, _ in ballots.values()]
    answers = {each: answer_of(ballots, each) for each in PRESENT}
    seeds, _ = recover_seeds(ring, answers, digests)
    votes = [body.votes for _, body in ballots.values()]
    votes_sum = add_votes(ring, votes, seeds, counts=COUNTS)
    counts = open_counts(ring, votes_seed(), votes_sum, short, counts=COUNTS)
    return {
        "check_sum": pack_bits(check_sum[0], ring.modulus_bits).hex(),
        "secret_sum": secret_to_bytes(secret).hex(),
        "seeds": [each.hex() for each in seeds],
        "votes_sum": pack_bits(votes_sum, ring.modulus_bits).hex(),
        "counts": counts.tolist(),
    }


def bad_vectors(good: dict[str, Any]) -> list[dict[str, Any]]:
    """What must be refused, and how. A patch is a position in the bytes and other bytes there."""
    return [*bad_ballots(good), *bad_sums(), *bad_openings(good), *bad_evidence(good)]


def bad_ballots(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Headers and seals that are not those of this round."""
    header = good["teachers"]["2"]["header"]
    return [
        bad("read header", "too short", "InputError", header=header[:-2]),
        bad("read header", "too long", "InputError", header=header + "00"),
        bad("open seal", "of another attempt", "SealUnopened", votes_seed="00" * 32),
        bad("open seal", "of another epoch", "SealUnopened", epoch=4),
        bad("open seal", "of another dealer", "SealUnopened", dealer=2),
        *(
            bad("open seal", f"with another {name}", "SealUnopened", header=[32 * at, "00"])
            for at, name in enumerate(
                ("salt", "digest of block 0", "digest of votes", "digest of the seed")
            )
        ),
    ]


def bad_sums() -> list[dict[str, Any]]:
    """Endorsed sums that do not give the sum of the secrets."""
    large = FIELD.to_bytes(2, "little").hex()
    return [
        bad("recover secret", "not in the field", "EncodingError", patch=[0, large]),
        bad("recover secret", "too few rows", "RowsError", without=5),
        bad("recover secret", "of teacher 0", "RowsError", renamed=[1, 0]),
        bad("recover secret", "of teacher 6", "RowsError", renamed=[5, 6]),
        bad("recover secret", "one element off", "OpeningFault", patch=[8, "0000"]),
        bad("recover secret", "rows exchanged", "OpeningFault", exchanged=[1, 2]),
    ]


def bad_openings(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Sums of secrets, seeds and votes that do not open the list."""
    secret = good["secret_sum"]
    first = int.from_bytes(bytes.fromhex(secret[:4]), "little")
    other = ((first + 1) % FIELD).to_bytes(2, "little").hex()
    not_short = (FIELD // 2).to_bytes(2, "little").hex()
    large = FIELD.to_bytes(2, "little").hex()
    return [
        bad("fit", "one coefficient off", "OpeningFault", secret=other + secret[4:]),
        bad("fit", "not short", "OpeningFault", secret=not_short + secret[4:]),
        bad("fit", "not in the field", "EncodingError", secret=large + secret[4:]),
        bad("fit", "too short a list", "EncodingError", secret=secret[:-4]),
        bad("fit", "of another epoch", "OpeningFault", epoch=4),
        bad("read seeds", "too short", "EncodingError", seeds=good["seeds"][0][:-2]),
        bad("read seeds", "not in the field", "EncodingError", seeds="ff" * 32),
    ]


def bad_evidence(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Roots and shown seals that must not count."""
    shown = good["teachers"]["2"]["shown_seed_seal"]
    return [
        bad("show root", "of another dealer", "ProofError", root=good["teachers"]["1"]["root"]),
        bad("show root", "too short", "ProofError", root=good["teachers"]["2"]["root"][:-2]),
        bad("show seal", "another row", "ProofError", row="00" * (len(shown["row"]) // 2)),
        bad("show seal", "another key", "ProofError", tag_key="00" * 32),
        bad("show seal", "too long a row", "ProofError", row=shown["row"] + "0000"),
        bad("show seal", "of another attempt", "ProofError", votes_seed="00" * 32),
    ]


def bad(operation: str, name: str, error: str, **changed: Any) -> dict[str, Any]:
    """A change of the good vector and the exception that it must cause."""
    return {"operation": operation, "name": name, "changed": changed, "error": error}


def make() -> dict[str, Any]:
    """Everything that is in the file."""
    good = good_vector()
    return {"good": good, "bad": bad_vectors(good)}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
