"""Epoch keys: both ends derive the same, nobody else does, and bad points are refused."""

import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from dppp.errors import EpochKeyFault, InputError, KeyMaterialError
from dppp.masks.curve25519 import (
    IDENTITY,
    LOW_ORDER_U,
    ORDER,
    PRIME,
    are_equal,
    clear_cofactor,
    is_on_curve,
    lift,
    multiply,
)
from dppp.masks.epoch_keys import (
    Epoch,
    EpochKey,
    EpochSecret,
    derive_pair_keys,
    own_row_key,
    pair_secret,
    require_on_curve,
)

EPOCH = Epoch(task_id=bytes(range(32)), number=7)
secrets = st.binary(min_size=32, max_size=32)


def secret_of(teacher: int, name: str = "epoch") -> EpochSecret:
    return EpochSecret.generate(
        teacher, lambda count: hashlib.shake_256(f"{name} {teacher}".encode()).digest(count)
    )


def encoded(u: int) -> bytes:
    return u.to_bytes(32, "little")


def twist_points(count: int) -> list[bytes]:
    return [encoded(u) for u in range(2, 200) if not is_on_curve(u)][:count]


@given(secrets, secrets)
def test_two_teachers_have_the_same_keys(one: bytes, other: bytes) -> None:
    first = EpochSecret(teacher=3, secret=one)
    second = EpochSecret(teacher=250, secret=other)
    seen_by_first = derive_pair_keys(pair_secret(first, second.key), EPOCH, first.key, second.key)
    seen_by_second = derive_pair_keys(pair_secret(second, first.key), EPOCH, second.key, first.key)
    assert seen_by_first == seen_by_second


@given(secrets)
def test_the_scalar_is_the_one_that_the_library_uses(secret: bytes) -> None:
    own = EpochSecret(teacher=1, secret=secret)
    assert own.scalar() % 8 == 0
    assert own.scalar().bit_length() == 255
    given_scalar = X25519PrivateKey.from_private_bytes(encoded(own.scalar()))
    assert given_scalar.public_key().public_bytes_raw() == own.key.public


def test_every_use_epoch_task_index_and_key_has_keys_of_its_own() -> None:
    one, other = secret_of(1), secret_of(2)
    shared = pair_secret(one, other.key)
    variants = [
        derive_pair_keys(shared, EPOCH, one.key, other.key),
        derive_pair_keys(bytes(32), EPOCH, one.key, other.key),
        derive_pair_keys(shared, Epoch(task_id=EPOCH.task_id, number=8), one.key, other.key),
        derive_pair_keys(shared, Epoch(task_id=bytes(32), number=7), one.key, other.key),
        derive_pair_keys(shared, EPOCH, one.key, EpochKey(teacher=3, public=other.key.public)),
        derive_pair_keys(shared, EPOCH, one.key, secret_of(2, "later").key),
    ]
    derived = [key for each in variants for key in (each.sealing_key, *each.mac_keys)]
    derived += [own_row_key(each, EPOCH) for each in (one, other)]
    derived.append(own_row_key(one, Epoch(task_id=EPOCH.task_id, number=8)))
    assert len(set(derived)) == len(derived) == 21
    assert {len(key) for key in derived} == {32}


def test_exchanged_public_keys_give_other_keys() -> None:
    one, other = secret_of(1), secret_of(2)
    shared = pair_secret(one, other.key)
    exchanged = derive_pair_keys(
        shared,
        EPOCH,
        EpochKey(teacher=1, public=other.key.public),
        EpochKey(teacher=2, public=one.key.public),
    )
    assert exchanged != derive_pair_keys(shared, EPOCH, one.key, other.key)


def test_a_mac_key_belongs_to_one_direction() -> None:
    one, other = secret_of(1), secret_of(2)
    keys = derive_pair_keys(pair_secret(one, other.key), EPOCH, one.key, other.key)
    forth = keys.mac_key(sender=1, receiver=2)
    assert forth != keys.mac_key(sender=2, receiver=1)
    for sender, receiver in ((1, 1), (1, 3), (3, 2)):
        with pytest.raises(InputError):
            keys.mac_key(sender=sender, receiver=receiver)


def test_a_teacher_is_not_a_pair_with_itself() -> None:
    own = secret_of(4)
    with pytest.raises(InputError):
        pair_secret(own, secret_of(4, "another").key)
    with pytest.raises(InputError):
        derive_pair_keys(bytes(32), EPOCH, own.key, own.key)


def test_a_stored_secret_comes_back() -> None:
    own = secret_of(9)
    again = EpochSecret.from_bytes(own.to_bytes())
    assert (again.teacher, again.secret, again.key) == (9, own.secret, own.key)
    assert own_row_key(again, EPOCH) == own_row_key(own, EPOCH)


def test_a_damaged_store_is_refused() -> None:
    stored = secret_of(9).to_bytes()
    no_teacher = stored[:-36] + bytes(4) + stored[-32:]
    for damaged in (b"", stored[:-1], stored + b"\0", b"x" + stored[1:]):
        with pytest.raises(KeyMaterialError):
            EpochSecret.from_bytes(damaged)
    with pytest.raises(InputError):
        EpochSecret.from_bytes(no_teacher)


def test_secrets_do_not_print() -> None:
    own, other = secret_of(1), secret_of(2)
    keys = derive_pair_keys(pair_secret(own, other.key), EPOCH, own.key, other.key)
    shown = repr(own) + str(own) + repr(keys) + str(keys)
    hidden = (own.secret, keys.sealing_key, *keys.mac_keys)
    for secret in hidden:
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown
    assert shown.count("<redacted>") == 4


def test_the_points_of_low_order_are_exactly_those_in_the_list() -> None:
    """The multiples of a point of order 8 are all of them; the curve has 8·ℓ points."""
    whole = next(
        point
        for u in range(2, 200)
        if is_on_curve(u)
        and not are_equal(multiply(4 * ORDER, point := lift(u, is_odd=False)), IDENTITY)
    )
    of_order_eight = multiply(ORDER, whole)
    found = set()
    for step in range(1, 8):
        point = multiply(step, of_order_eight)
        assert are_equal(clear_cofactor(point), IDENTITY)
        _, y, z, _ = point
        found.add((z + y) * pow(z - y, -1, PRIME) % PRIME)
    assert found == LOW_ORDER_U


@pytest.mark.parametrize("u", sorted(LOW_ORDER_U))
def test_a_key_of_low_order_is_refused_with_its_teacher(u: int) -> None:
    with pytest.raises(EpochKeyFault, match="low order") as caught:
        EpochKey(teacher=5, public=encoded(u))
    assert caught.value.culprits == (5,)


def test_low_order_on_the_twist_is_refused_at_the_exchange_and_as_a_twist() -> None:
    minus_one = EpochKey(teacher=5, public=encoded(PRIME - 1))
    with pytest.raises(EpochKeyFault) as caught:
        pair_secret(secret_of(1), minus_one)
    assert caught.value.culprits == (5,)
    with pytest.raises(EpochKeyFault):
        require_on_curve(minus_one)


@pytest.mark.parametrize(
    "public",
    [b"", bytes(31), bytes(33), encoded(PRIME), encoded(PRIME + 9), encoded(9 + 2**255)],
    ids=["empty", "short", "long", "p", "p+9", "top bit"],
)
def test_a_key_that_is_not_canonical_is_refused(public: bytes) -> None:
    with pytest.raises(EpochKeyFault) as caught:
        EpochKey(teacher=6, public=public)
    assert caught.value.culprits == (6,)


def test_a_point_on_the_twist_is_refused_with_its_teacher() -> None:
    for public in twist_points(20):
        with pytest.raises(EpochKeyFault, match="twist") as caught:
            require_on_curve(EpochKey(teacher=8, public=public))
        assert caught.value.culprits == (8,)


@given(secrets)
def test_an_honest_key_is_on_the_curve(secret: bytes) -> None:
    require_on_curve(EpochSecret(teacher=1, secret=secret).key)


def test_on_curve_and_lift_agree_for_small_coordinates() -> None:
    for u in range(2, 100):
        if is_on_curve(u):
            x, y, _, _ = lift(u, is_odd=True)
            assert x & 1
            assert (1 + y) * pow(1 - y, -1, PRIME) % PRIME == u
        else:
            with pytest.raises(InputError):
                lift(u, is_odd=True)


@pytest.mark.parametrize("teacher", [0, -1, 65_536])
def test_an_index_that_no_teacher_has_is_refused(teacher: int) -> None:
    with pytest.raises(InputError):
        EpochKey(teacher=teacher, public=encoded(9))
    with pytest.raises(InputError):
        EpochSecret(teacher=teacher, secret=bytes(32))


def test_an_epoch_has_a_task_and_a_number() -> None:
    for task_id, number in ((bytes(31), 0), (bytes(32), -1), (bytes(32), 2**64)):
        with pytest.raises(InputError):
            Epoch(task_id=task_id, number=number)


def test_the_secret_has_32_bytes() -> None:
    with pytest.raises(KeyMaterialError):
        EpochSecret(teacher=1, secret=bytes(31))
