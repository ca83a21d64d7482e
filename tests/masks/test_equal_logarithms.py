"""The proof that a shown secret is the pair's: it holds for the right one, and for nothing else."""

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.masks.seals import seal_many

from dppp.errors import EpochKeyFault, PeerFault, ProofError, SealUnopened
from dppp.masks.curve25519 import (
    BASE,
    COFACTOR,
    IDENTITY,
    LOW_ORDER_U,
    ORDER,
    PRIME,
    Point,
    add,
    are_equal,
    clear_cofactor,
    decode_u,
    double,
    encode,
    is_of_prime_order,
    is_on_curve,
    lift,
    multiply,
    multiply_two,
    negate,
)
from dppp.masks.epoch_keys import (
    Epoch,
    EpochKey,
    EpochSecret,
    derive_pair_keys,
    pair_secret,
    require_on_curve,
)
from dppp.masks.equal_logarithms import (
    PROOF_BYTES,
    _Statement,
    prove_pair_secret,
    verify_pair_secret,
)
from dppp.masks.sealing import CONTEXT_BYTES, Purpose, open_one

pytestmark = pytest.mark.attack

EPOCH = Epoch(task_id=bytes(range(32)), number=7)
CONTEXT = EPOCH.to_bytes() + b"batch, attempt, which seal"
ORDER_EIGHT = lift(
    39382357235489614581723060781553021112529911719440698176882885853963445705823, is_odd=False
)
TORSION = [multiply(step, ORDER_EIGHT) for step in range(8)]
secrets = st.binary(min_size=32, max_size=32)
scalars = st.integers(0, ORDER - 1)


def secret_of(teacher: int) -> EpochSecret:
    return EpochSecret(teacher=teacher, secret=hashlib.sha256(bytes((teacher,))).digest())


def u_of(point: Point) -> bytes:
    _, y, z, _ = point
    return ((z + y) * pow(z - y, -1, PRIME) % PRIME).to_bytes(32, "little")


def point_of(key: EpochKey) -> Point:
    return lift(decode_u(key.public), is_odd=False)


def clamped(scalar: bytes) -> int:
    return (int.from_bytes(scalar, "little") & (2**254 - 8)) | 2**254


@dataclass(frozen=True, slots=True, kw_only=True)
class Liar:
    """A prover who follows the equations with any scalar, for any points over the coordinates."""

    scalar: int
    own: EpochKey
    other: EpochKey

    def prove(self, shared: bytes, *, is_odd: bool, nonce: int = 12345) -> bytes:
        statement = _Statement.of(self.own, self.other, shared, CONTEXT, is_odd=is_odd)
        first = multiply(nonce, clear_cofactor(BASE))
        challenge = statement.challenge(first, multiply(nonce, statement.other_point))
        response = (nonce + challenge * self.scalar) % ORDER
        numbers = challenge.to_bytes(32, "little") + response.to_bytes(32, "little")
        return bytes((is_odd,)) + numbers

    def succeeds_with(self, shared: bytes) -> bool:
        """Whatever the signs of scalar and point."""
        for scalar, is_odd in itertools.product((self.scalar, -self.scalar % ORDER), (False, True)):
            liar = Liar(scalar=scalar, own=self.own, other=self.other)
            try:
                proof = liar.prove(shared, is_odd=is_odd)
                verify_pair_secret(self.own, self.other, shared, CONTEXT, proof)
            except PeerFault:
                continue
            return True
        return False


# RFC 7748, sections 5.2 and 6.1: scalar, u-coordinate, product; the one on the twist is below.
RFC_7748 = [
    (
        "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
        "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
        "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
    ),
    (
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        f"{9:02x}{0:062x}",
        "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a",
    ),
    (
        "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
        f"{9:02x}{0:062x}",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
    ),
    (
        "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
        "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f",
        "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
    ),
]


@pytest.mark.parametrize(("scalar", "u", "product"), RFC_7748)
def test_points_agree_with_rfc_7748(scalar: str, u: str, product: str) -> None:
    point = lift(decode_u(bytes.fromhex(u)), is_odd=True)
    assert u_of(multiply(clamped(bytes.fromhex(scalar)), point)).hex() == product


def test_the_second_vector_of_rfc_7748_is_on_the_twist_where_no_proof_is_possible() -> None:
    scalar = bytes.fromhex("4b66e9d4d1b4673c5ad22691957d6af5c11b6421e0ea01d42ca4169e7918ba0d")
    public = bytes.fromhex("e5210f12786811d3f4b7959d0538ae2c31dbe7106fc03c3efc4cd549c715a493")
    product = "95cbde9476e8907d7aade45cb4b873f88b595a68799fa152e6f8f7647aac7957"
    peer = X25519PublicKey.from_public_bytes(public)
    assert X25519PrivateKey.from_private_bytes(scalar).exchange(peer).hex() == product
    with pytest.raises(EpochKeyFault, match="2\\^255"):
        EpochKey(teacher=2, public=public)
    canonical = EpochKey(teacher=2, public=public[:-1] + bytes((public[-1] & 127,)))
    with pytest.raises(EpochKeyFault, match="twist"):
        require_on_curve(canonical)


@given(secrets, st.integers(2, PRIME - 2))
def test_points_agree_with_the_library_wherever_a_point_is_on_the_curve(
    scalar: bytes, u: int
) -> None:
    if not is_on_curve(u) or u in LOW_ORDER_U:
        return
    public = X25519PublicKey.from_public_bytes(u.to_bytes(32, "little"))
    expected = X25519PrivateKey.from_private_bytes(scalar).exchange(public)
    assert u_of(multiply(clamped(scalar), lift(u, is_odd=False))) == expected


@given(scalars, scalars)
def test_multiples_add_up(one: int, other: int) -> None:
    second = multiply(7, BASE)
    expected = add(multiply(one, BASE), multiply(other, second))
    assert are_equal(multiply_two(one, BASE, other, second), expected)
    assert are_equal(multiply((one + 7 * other) % ORDER, BASE), expected)
    assert are_equal(add(expected, negate(expected)), IDENTITY)
    assert are_equal(double(expected), add(expected, expected))
    assert encode(double(expected)) == encode(add(expected, expected))


def test_only_multiples_of_the_base_are_of_prime_order() -> None:
    assert is_of_prime_order(BASE)
    assert not is_of_prime_order(IDENTITY)
    for low in TORSION[1:]:
        assert not is_of_prime_order(low)
        assert not is_of_prime_order(add(BASE, low))
        assert are_equal(multiply(COFACTOR, low), IDENTITY)


@settings(max_examples=25)
@given(secrets, secrets, st.binary(max_size=80), secrets)
def test_the_true_secret_has_a_proof(
    one: bytes, other: bytes, context: bytes, fresh: bytes
) -> None:
    own, peer = EpochSecret(teacher=2, secret=one), EpochSecret(teacher=1, secret=other)
    shared, proof = prove_pair_secret(own, peer.key, context, lambda count: fresh[:count])
    assert shared == pair_secret(peer, own.key)
    assert len(proof) == PROOF_BYTES
    verify_pair_secret(own.key, peer.key, shared, context, proof)


@settings(max_examples=25)
@given(secrets, secrets, st.integers(1, ORDER - 1))
def test_a_wrong_secret_has_none(one: bytes, other: bytes, shift: int) -> None:
    """The liar knows both scalars, uses either, and shows any other point of prime order."""
    own, peer = EpochSecret(teacher=1, secret=one), EpochSecret(teacher=2, secret=other)
    true_point = lift(decode_u(peer.exchange(own.key)), is_odd=False)
    wrong = u_of(add(true_point, multiply(shift, BASE)))
    if wrong in (u_of(true_point), bytes(32)):
        return
    for scalar in (own.scalar(), peer.scalar(), own.scalar() + shift):
        assert not Liar(scalar=scalar % ORDER, own=own.key, other=peer.key).succeeds_with(wrong)
    honest = Liar(scalar=own.scalar() % ORDER, own=own.key, other=peer.key)
    assert honest.succeeds_with(u_of(true_point)), "the liar can prove what is true"


def test_no_bit_of_proof_or_statement_can_be_changed() -> None:
    own, peer = secret_of(1), secret_of(2)
    shared, proof = prove_pair_secret(own, peer.key, CONTEXT)
    for at, bit in itertools.product(range(PROOF_BYTES), (0, 3, 7)):
        changed = proof[:at] + bytes((proof[at] ^ 1 << bit,)) + proof[at + 1 :]
        with pytest.raises(ProofError) as caught:
            verify_pair_secret(own.key, peer.key, shared, CONTEXT, changed)
        assert caught.value.culprits == (1,)
    for at in range(32):
        changed = shared[:at] + bytes((shared[at] ^ 1,)) + shared[at + 1 :]
        with pytest.raises(ProofError):
            verify_pair_secret(own.key, peer.key, changed, CONTEXT, proof)


def test_a_proof_is_for_one_pair_direction_and_context() -> None:
    own, peer, third = secret_of(1), secret_of(2), secret_of(3)
    shared, proof = prove_pair_secret(own, peer.key, CONTEXT)
    renamed = EpochKey(teacher=4, public=own.key.public)
    others = [
        (peer.key, own.key, CONTEXT),
        (own.key, third.key, CONTEXT),
        (third.key, peer.key, CONTEXT),
        (renamed, peer.key, CONTEXT),
        (own.key, EpochKey(teacher=4, public=peer.key.public), CONTEXT),
        (own.key, EpochKey(teacher=1, public=peer.key.public), CONTEXT),
        (own.key, peer.key, CONTEXT + b"\0"),
        (own.key, peer.key, b""),
    ]
    for complainer, other, context in others:
        with pytest.raises(ProofError) as caught:
            verify_pair_secret(complainer, other, shared, context, proof)
        assert caught.value.culprits == (complainer.teacher,)


def test_a_malformed_proof_or_secret_is_refused() -> None:
    own, peer = secret_of(1), secret_of(2)
    shared, proof = prove_pair_secret(own, peer.key, CONTEXT)
    challenge, response = proof[1:33], proof[33:]
    not_reduced = (int.from_bytes(response, "little") + ORDER).to_bytes(32, "little")
    too_large = (int.from_bytes(challenge, "little") + ORDER).to_bytes(32, "little")
    bad_proofs = [b"", proof[:-1], proof + b"\0", b"\2" + proof[1:], bytes(PROOF_BYTES)]
    bad_proofs += [proof[:33] + not_reduced, proof[:1] + too_large + response]
    for each in bad_proofs:
        with pytest.raises(ProofError):
            verify_pair_secret(own.key, peer.key, shared, CONTEXT, each)
    not_canonical = (decode_u(shared) | 2**255).to_bytes(32, "little")
    on_twist = next(u for u in range(2, 99) if not is_on_curve(u)).to_bytes(32, "little")
    low = [u.to_bytes(32, "little") for u in LOW_ORDER_U]
    for each in (b"", shared[:-1], not_canonical, on_twist, *low):
        with pytest.raises(ProofError):
            verify_pair_secret(own.key, peer.key, each, CONTEXT, proof)


def test_a_key_on_the_twist_convicts_its_owner() -> None:
    own, peer = secret_of(1), secret_of(2)
    shared, proof = prove_pair_secret(own, peer.key, CONTEXT)
    on_twist = next(u for u in range(2, 99) if not is_on_curve(u)).to_bytes(32, "little")
    for keys, culprit in (
        ((own.key, EpochKey(teacher=2, public=on_twist)), 2),
        ((EpochKey(teacher=1, public=on_twist), peer.key), 1),
    ):
        with pytest.raises(EpochKeyFault) as caught:
            verify_pair_secret(*keys, shared, CONTEXT, proof)
        assert caught.value.culprits == (culprit,)
    with pytest.raises(EpochKeyFault):
        prove_pair_secret(own, EpochKey(teacher=2, public=on_twist), CONTEXT)


@pytest.mark.parametrize("step", range(1, 8))
def test_low_order_in_the_dealers_key_does_not_make_an_honest_complainer_fail(step: int) -> None:
    own, dealer = secret_of(1), secret_of(2)
    tainted = EpochKey(teacher=2, public=u_of(add(point_of(dealer.key), TORSION[step])))
    shared, proof = prove_pair_secret(own, tainted, CONTEXT)
    verify_pair_secret(own.key, tainted, shared, CONTEXT, proof)
    assert shared == pair_secret(dealer, own.key), "X25519 clears it, so both have the same secret"


@pytest.mark.parametrize("step", range(1, 8))
def test_low_order_in_the_complainers_key_does_not_help_it_to_show_another_secret(
    step: int,
) -> None:
    """All the points that its equations could lead to; only the dealer's own value passes."""
    liar, dealer = secret_of(1), secret_of(2)
    tainted = EpochKey(teacher=1, public=u_of(add(point_of(liar.key), TORSION[step])))
    prover = Liar(scalar=liar.scalar() % ORDER, own=tainted, other=dealer.key)
    seen_by_dealer = pair_secret(dealer, tainted)
    true_point = lift(decode_u(seen_by_dealer), is_odd=False)
    shown = [u_of(add(true_point, low)) for low in TORSION]
    assert [prover.succeeds_with(each) for each in shown] == [True] + [False] * 7
    assert shown[0] == seen_by_dealer


def test_without_the_check_of_its_order_a_shown_point_could_have_eight_values(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own, dealer = secret_of(1), secret_of(2)
    true_point = lift(decode_u(pair_secret(dealer, own.key)), is_odd=False)
    prover = Liar(scalar=own.scalar() % ORDER, own=own.key, other=dealer.key)
    shown = {u_of(add(true_point, low)) for low in TORSION}
    assert len(shown) == 8
    assert sum(map(prover.succeeds_with, shown)) == 1
    monkeypatch.setattr("dppp.masks.equal_logarithms.is_of_prime_order", lambda _: True)
    assert sum(map(prover.succeeds_with, shown)) == 8


def test_the_same_randomness_twice_does_not_give_the_secret_away() -> None:
    own, peer = secret_of(1), secret_of(2)
    proofs = [prove_pair_secret(own, peer.key, context, bytes)[1] for context in (b"one", b"other")]
    first, second = (
        (int.from_bytes(proof[1:33], "little"), int.from_bytes(proof[33:], "little"))
        for proof in proofs
    )
    slope = (second[1] - first[1]) * pow(second[0] - first[0], -1, ORDER) % ORDER
    assert slope not in (own.scalar() % ORDER, -own.scalar() % ORDER)
    assert prove_pair_secret(own, peer.key, b"one", bytes)[1] == proofs[0]


ROW = bytes(range(40))
ADDRESS: dict[str, Any] = {
    "purpose": Purpose.SECRET_ROW,
    "dealer": 2,
    "context": bytes(CONTEXT_BYTES),
}


def seal_row(key: bytes) -> bytes:
    plaintext = np.frombuffer(ROW, dtype=np.uint8).reshape(1, -1)
    return seal_many([key], plaintext, recipients=[1], **ADDRESS)[0]


def judge(complainer: EpochKey, dealer: EpochKey, shown: bytes, sealed: bytes) -> bytes:
    """What everybody does with a shown secret once its proof holds."""
    key = derive_pair_keys(shown, EPOCH, complainer, dealer).sealing_key
    return open_one(key, sealed, recipient=1, length=len(ROW), **ADDRESS)


def test_a_dealer_who_sealed_under_a_false_key_is_convicted_and_frames_nobody() -> None:
    complainer, dealer = secret_of(1), secret_of(2)
    false_secret = secret_of(7).exchange(complainer.key)
    false_key = derive_pair_keys(false_secret, EPOCH, complainer.key, dealer.key).sealing_key
    sealed = seal_row(false_key)

    shared, proof = prove_pair_secret(complainer, dealer.key, CONTEXT)
    verify_pair_secret(complainer.key, dealer.key, shared, CONTEXT, proof)
    with pytest.raises(SealUnopened) as caught:
        judge(complainer.key, dealer.key, shared, sealed)
    assert caught.value.dealers == (2,)

    assert judge(complainer.key, dealer.key, false_secret, sealed) == ROW, "the frame, unproven"
    liar = Liar(scalar=dealer.scalar() % ORDER, own=complainer.key, other=dealer.key)
    assert not liar.succeeds_with(false_secret)


def test_a_complainer_cannot_show_a_secret_under_which_a_good_seal_fails() -> None:
    complainer, dealer = secret_of(1), secret_of(2)
    shared = pair_secret(dealer, complainer.key)
    key = derive_pair_keys(shared, EPOCH, dealer.key, complainer.key).sealing_key
    sealed = seal_row(key)
    liar = Liar(scalar=complainer.scalar() % ORDER, own=complainer.key, other=dealer.key)
    assert liar.succeeds_with(shared)
    assert judge(complainer.key, dealer.key, shared, sealed) == ROW
    false_secret = pair_secret(complainer, secret_of(3).key)
    with pytest.raises(SealUnopened):
        judge(complainer.key, dealer.key, false_secret, sealed)
    assert not liar.succeeds_with(false_secret)
