"""Structure, blinding, encryption and packing."""

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any

import gmpy2
import pytest
from gmpy2 import mpz
from hypothesis import given, settings
from hypothesis import strategies as st

from dppp.errors import EncodingError, GroupElementError, InputError, PackingError
from dppp.paillier.blinding import BlindingTable, full_blinding
from dppp.paillier.blinding_pool import BlindingPool
from dppp.paillier.dealer import deal
from dppp.paillier.encryption import (
    Ciphertext,
    add,
    add_ballots,
    encrypt,
    read_ciphertexts,
    write_ciphertexts,
)
from dppp.paillier.packing import Packing
from dppp.paillier.structure import (
    generator_logarithm,
    lift_root,
    raise_generator,
    split_element,
)

degrees = st.integers(1, 5)


def _decrypt(keys: Any, public: Any, ciphertext: mpz) -> mpz:
    """With the primes: c^(2m′) = (1+n)^(2m′ m)."""
    order = 2 * (keys.short_primes[0] // 2) * (keys.short_primes[1] // 2)
    power = gmpy2.powmod(ciphertext, order, public.ciphertext_modulus)
    inverse = gmpy2.invert(order, public.plaintext_modulus)
    return generator_logarithm(public, power) * inverse % public.plaintext_modulus


@settings(deadline=None)
@given(degrees, st.integers(0, 1 << 3000))
def test_closed_forms_equal_the_powers_they_stand_for(keys: Any, s: int, drawn: int) -> None:
    public = keys.dealt(s).public
    plaintext = mpz(drawn) % public.plaintext_modulus
    power = raise_generator(public, plaintext)
    assert power == gmpy2.powmod(public.generator, plaintext, public.ciphertext_modulus)
    assert generator_logarithm(public, power) == plaintext
    root = 1 + mpz(drawn) % (public.modulus - 1)
    direct = gmpy2.powmod(root, public.plaintext_modulus, public.ciphertext_modulus)
    assert lift_root(public, root) == direct
    residue, logarithm = split_element(public, direct)
    assert residue < public.modulus
    assert residue * raise_generator(public, logarithm) % public.ciphertext_modulus == direct


@pytest.mark.parametrize("s", [1, 2, 4])
def test_a_tables_blinding_is_the_power_of_its_root(keys: Any, s: int) -> None:
    public, table = keys.dealt(s).public, keys.table(s)
    for blinding in (table.draw(), table.blinding(mpz(0)), full_blinding(public)):
        short = gmpy2.powmod(public.blinding_base, blinding.exponent, public.modulus)
        power = encrypt(public, mpz(0), blinding)
        assert power == lift_root(public, blinding.root * short % public.modulus)


def test_a_table_of_a_real_key_takes_less_than_64_megabytes() -> None:
    public = deal(teachers=2, threshold=2, s=2).public
    table = BlindingTable(public)
    assert 5_000_000 < table.table_bytes < 64_000_000
    assert BlindingTable(public, bytes_limit=2_000_000).table_bytes < table.table_bytes / 2


def test_a_table_that_cannot_fit_is_refused(keys: Any) -> None:
    with pytest.raises(InputError, match="allow more"):
        BlindingTable(keys.dealt().public, bytes_limit=1000)


@settings(deadline=None)
@given(degrees, st.lists(st.integers(0, 1 << 500), min_size=1, max_size=6))
def test_sums_add(keys: Any, s: int, plaintexts: list[int]) -> None:
    public = keys.dealt(s).public
    plaintexts = [plaintext % int(public.plaintext_modulus) for plaintext in plaintexts]
    tally = add(public, keys.encrypted(public, plaintexts))
    assert _decrypt(keys, public, tally) == sum(plaintexts) % public.plaintext_modulus


def test_ballots_add_place_by_place_and_must_be_of_one_length(keys: Any) -> None:
    public = keys.dealt().public
    ballots = [keys.encrypted(public, row) for row in ([1, 2], [30, 40], [500, 600])]
    tally = add_ballots(public, ballots)
    assert [_decrypt(keys, public, place) for place in tally] == [531, 642]
    for wrong in ([], [ballots[0], ballots[1][:1]]):
        with pytest.raises(InputError):
            add_ballots(public, wrong)


def test_plaintexts_out_of_range_are_refused(keys: Any) -> None:
    public, table = keys.dealt().public, keys.table()
    for wrong in (mpz(-1), public.plaintext_modulus):
        with pytest.raises(InputError):
            encrypt(public, wrong, table.draw())


def test_ciphertexts_survive_their_encoding_and_bad_ones_do_not(keys: Any) -> None:
    public = keys.dealt(2).public
    ciphertexts = keys.encrypted(public, [1, 2, 3])
    data = write_ciphertexts(public, ciphertexts)
    assert read_ciphertexts(public, data) == ciphertexts
    for wrong in (b"", data[:-1], data + b"\0"):
        with pytest.raises(EncodingError):
            read_ciphertexts(public, wrong)
    outside = [mpz(0), public.ciphertext_modulus, public.modulus, keys.short_primes[0] * 6]
    for value in outside:
        bad = write_ciphertexts(public, [ciphertexts[0], Ciphertext(value)])
        with pytest.raises(GroupElementError, match="ciphertext 1 ") as caught:
            read_ciphertexts(public, bad)
        assert caught.value.position == 1


def test_a_pool_hands_out_each_blinding_once_and_stops(keys: Any) -> None:
    before = threading.active_count()
    with BlindingPool(keys.table(), capacity=5) as pool:
        pool.wait_until_full()
        assert len(pool) == 5
        taken = [pool.take().exponent for _ in range(20)]
    assert len(set(taken)) == 20
    assert threading.active_count() == before
    with pytest.raises(InputError, match="closed"):
        pool.take()
    with pytest.raises(InputError):
        BlindingPool(keys.table(), capacity=0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_pool_without_randomness_closes_instead_of_hanging(keys: Any) -> None:
    def broken(_length: int) -> bytes:
        raise OSError("no randomness")

    with BlindingPool(keys.table(), capacity=2, randomness=broken) as pool:
        pool.wait_until_full()
        with pytest.raises(InputError, match="closed"):
            pool.take()


def _run_in_a_child(work: Callable[[], list[str]]) -> list[str]:
    """What `work` returns in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, " ".join(work()).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        found = answer.read().split()
    os.waitpid(child, 0)
    return found


def _take(pool: BlindingPool, count: int) -> list[str]:
    return [pool.take().exponent.digits(16) for _ in range(count)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_process_never_gets_a_blinding_of_its_parent(
    keys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with BlindingPool(keys.table(), capacity=5) as pool:
        pool.wait_until_full()
        children = _run_in_a_child(lambda: _take(pool, 7)) + _run_in_a_child(lambda: _take(pool, 7))
        assert len({*children, *_take(pool, 7)}) == 21
        # Without a look at the process, all would encrypt under the same blindings.
        pool.wait_until_full()
        monkeypatch.setattr(BlindingPool, "_is_forked", False)
        assert _run_in_a_child(lambda: _take(pool, 3)) == _take(pool, 3)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_pool_waits_for_no_thread_and_can_be_closed(keys: Any) -> None:
    def work() -> list[str]:
        pool.wait_until_full()
        pool.close()
        try:
            pool.take()
        except InputError:
            return ["closed", str(len(pool))]
        return []

    def hold() -> None:
        with pool._changed:
            held.set()
            done.wait()

    held, done = threading.Event(), threading.Event()
    with BlindingPool(keys.table(), capacity=5) as pool:
        # The child's copy of the lock is held by a thread that the child does not have.
        holder = threading.Thread(target=hold)
        holder.start()
        held.wait()
        assert _run_in_a_child(work) == ["closed", "0"]
        done.set()
        holder.join()
        assert _take(pool, 1)


packings = st.builds(
    Packing,
    contributions=st.integers(1, 300),
    entry_bound=st.integers(1, 500),
    plaintext_bits=st.integers(40, 900),
)


@settings(deadline=None)
@given(packings, st.data())
def test_packing_inverts_for_sums_of_every_ballot(packing: Packing, data: st.DataObject) -> None:
    entry = st.integers(0, packing.entry_bound)
    count = data.draw(st.integers(1, 3 * packing.slots))
    one = data.draw(st.lists(entry, min_size=count, max_size=count))
    full = [packing.entry_bound] * count
    rest = packing.contributions - 1
    plaintexts = [
        first + rest * second
        for first, second in zip(packing.pack(one), packing.pack(full), strict=True)
    ]
    assert max(plaintexts).bit_length() <= packing.plaintext_bits
    sums = packing.unpack(plaintexts, count)
    assert sums == tuple(value + rest * packing.entry_bound for value in one)


@settings(deadline=None)
@given(packings, st.data())
def test_packing_refuses_overflow_by_one_and_names_the_slot(
    packing: Packing, data: st.DataObject
) -> None:
    count = data.draw(st.integers(1, 3 * packing.slots))
    slot = data.draw(st.integers(0, count - 1))
    entries = [packing.entry_bound] * count
    entries[slot] += 1
    with pytest.raises(PackingError, match=f"slot {slot} ") as caught:
        packing.pack(entries)
    assert caught.value.slot == slot
    entries[slot] = -1
    with pytest.raises(PackingError, match=f"slot {slot} "):
        packing.pack(entries)


def test_unpacking_names_the_slot_that_breaks_its_bound() -> None:
    packing = Packing(contributions=5, entry_bound=3, plaintext_bits=17)
    assert (packing.slot_bits, packing.slots) == (4, 4)
    wide = Packing(contributions=5, entry_bound=2, plaintext_bits=17)  # a bound of 10 in 4 bits
    for slot, value in itertools.product(range(6), (11, 15)):
        plaintexts = [mpz(0), mpz(0)]
        plaintexts[slot // 4] += value << (4 * (slot % 4))
        with pytest.raises(PackingError, match=f"slot {slot} ") as caught:
            wide.unpack(plaintexts, 6)
        assert caught.value.slot == slot
    assert wide.unpack([mpz(10), mpz(0)], 6)[0] == 10
    with pytest.raises(PackingError, match="slot 0 "):
        wide.unpack([mpz(10), mpz(0)], 6, contributions=4)


def test_whatever_lies_behind_the_last_slot_must_be_zero() -> None:
    packing = Packing(contributions=5, entry_bound=3, plaintext_bits=17)
    for plaintexts, count in (([mpz(1) << 16], 4), ([mpz(0), mpz(1) << 8], 6), ([mpz(-1)], 1)):
        with pytest.raises(PackingError, match="not zero"):
            packing.unpack(plaintexts, count)
    for plaintexts, count in (([], 1), ([mpz(0)], 5)):
        with pytest.raises(InputError):
            packing.unpack(plaintexts, count)
    with pytest.raises(InputError):
        packing.unpack([mpz(0)], 1, contributions=6)


def test_packings_that_cannot_be_are_refused() -> None:
    for terms in ((0, 1, 9), (1, 0, 9), (100, 100, 9)):
        with pytest.raises(InputError):
            Packing(contributions=terms[0], entry_bound=terms[1], plaintext_bits=terms[2])
