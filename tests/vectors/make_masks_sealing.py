"""Makes masks_sealing.json from fixed secrets: `python tests/vectors/make_masks_sealing.py`.

The good vector holds everything that two teachers derive and seal in one epoch, and a complaint. A
bad one names the operation, what is changed in the good one for it, and the exception that it must
cause. All bytes are in hexadecimal.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from dppp.masks.curve25519 import ORDER, PRIME, add, decode_u, is_on_curve, lift, multiply
from dppp.masks.epoch_keys import (
    Epoch,
    EpochSecret,
    derive_pair_keys,
    own_row_key,
    pair_secret,
)
from dppp.masks.equal_logarithms import prove_pair_secret
from dppp.masks.possession import prove_possession
from dppp.masks.sealing import Pairs, Purpose

VECTORS = Path(__file__).with_name("masks_sealing.json")
DEALER, RECIPIENT = 250, 3
ROW_BYTES = {Purpose.SECRET_ROW: 164, Purpose.SEED_ROW: 2}
ORDER_EIGHT_U = 39382357235489614581723060781553021112529911719440698176882885853963445705823


def fixed(name: str, count: int) -> bytes:
    """Bytes that are the same in every run."""
    return hashlib.shake_256(f"masks sealing vectors: {name}".encode()).digest(count)


def good_vector() -> dict[str, Any]:
    """One epoch of dealer 250 and recipient 3: keys, a seal of each kind, a complaint."""
    epoch = Epoch(task_id=fixed("task", 32), number=41)
    dealer = EpochSecret(teacher=DEALER, secret=fixed("dealer", 32))
    recipient = EpochSecret(teacher=RECIPIENT, secret=fixed("recipient", 32))
    shared = pair_secret(dealer, recipient.key)
    keys = derive_pair_keys(shared, epoch, dealer.key, recipient.key)
    context, complaint = fixed("context", 64), fixed("complaint", 45)
    shown, proof = prove_pair_secret(
        recipient, dealer.key, complaint, lambda count: fixed("nonce", count)
    )
    return {
        "task_id": epoch.task_id.hex(),
        "epoch": epoch.number,
        "dealer": party(dealer, epoch),
        "recipient": party(recipient, epoch),
        "pair_secret": shared.hex(),
        "sealing_key": keys.sealing_key.hex(),
        "mac_key_to_recipient": keys.mac_key(sender=DEALER, receiver=RECIPIENT).hex(),
        "mac_key_to_dealer": keys.mac_key(sender=RECIPIENT, receiver=DEALER).hex(),
        "context": context.hex(),
        "seals": [seal(keys.sealing_key, context, purpose) for purpose in Purpose],
        "complaint": complaint.hex(),
        "shown": shown.hex(),
        "proof": proof.hex(),
    }


def party(secret: EpochSecret, epoch: Epoch) -> dict[str, Any]:
    """What one teacher has by itself."""
    return {
        "teacher": secret.teacher,
        "secret": secret.secret.hex(),
        "stored": secret.to_bytes().hex(),
        "public": secret.key.public.hex(),
        "possession": prove_possession(secret, epoch).hex(),
        "own_row_key": own_row_key(secret, epoch).hex(),
    }


def seal(key: bytes, context: bytes, purpose: Purpose) -> dict[str, Any]:
    """A row of this kind from the dealer to the recipient."""
    row = fixed(purpose.name, ROW_BYTES[purpose])
    length = ROW_BYTES[Purpose.SECRET_ROW]
    pair = Pairs.of_dealer(
        [key], dealer=DEALER, recipients=[RECIPIENT], context=context, length=length
    )
    sealed = pair.seal(purpose, np.frombuffer(row, dtype=np.uint8).reshape(1, -1))
    return {"purpose": int(purpose), "row": row.hex(), "sealed": sealed.hex()}


def bad_vectors(good: dict[str, Any]) -> list[dict[str, Any]]:
    """What must be refused, and how."""
    return [*bad_keys(good), *bad_seals(good), *bad_complaints(good)]


def bad_keys(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Epoch keys and proofs of possession that must not pass."""
    twist = next(u for u in range(2, 99) if not is_on_curve(u))
    publics = {
        "of order 2": 0,
        "of order 4": 1,
        "of order 8": ORDER_EIGHT_U,
        "not reduced": PRIME + 9,
        "on the twist": twist,
        "of order 4 on the twist": PRIME - 1,
    }
    possession = good["dealer"]["possession"]
    return [
        *(
            bad("check key", name, "EpochKeyFault", public=u.to_bytes(32, "little").hex())
            for name, u in publics.items()
        ),
        bad("verify possession", "of another teacher", "EpochKeyFault", teacher=RECIPIENT),
        bad("verify possession", "of another epoch", "EpochKeyFault", epoch=42),
        bad("verify possession", "other sign", "EpochKeyFault", possession=flip(possession, 0)),
        bad("verify possession", "other s", "EpochKeyFault", possession=flip(possession, 40)),
        bad("read secret", "too short", "KeyMaterialError", stored=good["dealer"]["stored"][:-2]),
    ]


def bad_seals(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Changes under which the seal of the secret row must not open."""
    sealed = good["seals"][0]["sealed"]
    changes = {
        "other ciphertext": {"sealed": flip(sealed, 0)},
        "other tag": {"sealed": flip(sealed, len(sealed) // 2 - 1)},
        "too short": {"sealed": sealed[2:]},
        "too long": {"sealed": sealed + "00"},
        "other direction": {"dealer": RECIPIENT, "recipient": DEALER},
        "other context": {"context": flip(good["context"], 63)},
        "other key": {"sealing_key": flip(good["sealing_key"], 0)},
        "a key for MACs": {"sealing_key": good["mac_key_to_recipient"]},
    }
    return [bad("open", name, "SealUnopened", **change) for name, change in changes.items()]


def bad_complaints(good: dict[str, Any]) -> list[dict[str, Any]]:
    """Complaints that must not count."""
    proof, shown = good["proof"], good["shown"]
    point = lift(decode_u(bytes.fromhex(shown)), is_odd=False)
    _, y, z, _ = add(point, lift(ORDER_EIGHT_U, is_odd=False))
    tainted = ((z + y) * pow(z - y, -1, PRIME) % PRIME).to_bytes(32, "little").hex()
    _, y, z, _ = multiply(2, point)
    doubled = ((z + y) * pow(z - y, -1, PRIME) % PRIME).to_bytes(32, "little").hex()
    response = int.from_bytes(bytes.fromhex(proof[66:]), "little") + ORDER
    changes = {
        "other sign": {"proof": flip(proof, 0)},
        "other challenge": {"proof": flip(proof, 1)},
        "other response": {"proof": flip(proof, 33)},
        "response not reduced": {"proof": proof[:66] + response.to_bytes(32, "little").hex()},
        "too short": {"proof": proof[:-2]},
        "other complaint": {"complaint": flip(good["complaint"], 0)},
        "secret with a part of order 8": {"shown": tainted},
        "twice the secret": {"shown": doubled},
        "secret of order 2": {"shown": bytes(32).hex()},
        "exchanged roles": {"dealer": RECIPIENT, "recipient": DEALER},
    }
    return [bad("complain", name, "ProofError", **change) for name, change in changes.items()]


def bad(operation: str, name: str, error: str, **changed: Any) -> dict[str, Any]:
    """A change of the good vector and the exception that it must cause."""
    return {"operation": operation, "name": name, "changed": changed, "error": error}


def flip(text: str, position: int) -> str:
    """The bytes with the lowest bit of one of them changed."""
    value = bytearray.fromhex(text)
    value[position] ^= 1
    return value.hex()


def make() -> dict[str, Any]:
    """Everything that is in the file."""
    good = good_vector()
    return {"good": good, "bad": bad_vectors(good)}


if __name__ == "__main__":
    VECTORS.write_text(json.dumps(make(), indent=1) + "\n", encoding="utf-8")
