import math

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.masks.streams import fixed_stream

from dppp.errors import InputError
from dppp.masks import ring
from dppp.masks.gaussian import draw
from dppp.masks.ring import ShortPolynomial, centre, multiply, public_polynomials

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

LARGEST_OF_A_THOUSAND = 83 * 1000


def by_whole_numbers(public: Words, short: Integers, modulus_bits: int) -> list[int]:
    """The product in Z[X]/(X^n + 1) by one product of large integers (Kronecker), then mod q.

    Every coefficient gets 128 bits, more than twice n·2^64·max|s|. All are raised by 2^127 before
    they are read, so that none is negative.
    """
    degree = len(public)
    raised = joined([2**127] * (2 * degree))
    right = joined([each + 2**127 for each in short.tolist()]) - joined([2**127] * degree)
    data = (joined(public.tolist()) * right + raised).to_bytes(32 * degree, "little")
    found = [int.from_bytes(data[at : at + 16], "little") for at in range(0, len(data), 16)]
    pairs = zip(found[:degree], found[degree:], strict=True)
    return [(low - high) % (1 << modulus_bits) for low, high in pairs]


def joined(values: list[int]) -> gmpy2.mpz:
    return gmpy2.mpz.from_bytes(b"".join(each.to_bytes(16, "little") for each in values), "little")


def by_schoolbook(public: Words, short: Integers, modulus_bits: int) -> list[int]:
    total = [0] * len(public)
    for i, left in enumerate(public.tolist()):
        for j, right in enumerate(short.tolist()):
            sign = -1 if i + j >= len(public) else 1
            total[(i + j) % len(public)] += sign * left * right
    return [each % (1 << modulus_bits) for each in total]


def extremes(degree: int, modulus_bits: int) -> dict[str, Words]:
    q, places = 1 << modulus_bits, np.arange(degree)
    return {
        "all the largest": np.full(degree, q - 1, dtype=np.uint64),
        "all a half": np.full(degree, q // 2, dtype=np.uint64),
        "all just below a half": np.full(degree, q // 2 - 1, dtype=np.uint64),
        "alternating": np.where(places % 2, q // 2, q // 2 - 1).astype(np.uint64),
        "low pieces at their ends": np.full(degree, q // 3, dtype=np.uint64),
        "random": public_polynomials(
            b"extremes", range(1), degree=degree, modulus_bits=modulus_bits
        )[0],
    }


def shorts(degree: int, largest: int) -> dict[str, Integers]:
    places = np.arange(degree)
    drawn = np.frombuffer(fixed_stream(degree)(4 * degree), dtype="<u4").astype(np.int64)
    return {
        "all the largest": np.full(degree, largest),
        "all the smallest": np.full(degree, -largest),
        "alternating": np.where(places % 2, largest, -largest),
        "one": np.where(places == degree - 1, -largest, 0),
        "random": drawn % (2 * largest + 1) - largest,
    }


@pytest.mark.parametrize("largest", [83, 32_760, LARGEST_OF_A_THOUSAND])
@pytest.mark.parametrize(("degree", "modulus_bits"), [(1024, 22), (1024, 28), (2048, 54)])
def test_products_of_extreme_polynomials_are_exact(
    degree: int, modulus_bits: int, largest: int
) -> None:
    publics = extremes(degree, modulus_bits)
    for name, short in shorts(degree, largest).items():
        products = multiply(
            np.stack(list(publics.values())), ShortPolynomial(short), modulus_bits=modulus_bits
        )
        for public, product in zip(publics, products, strict=True):
            expected = by_whole_numbers(publics[public], short, modulus_bits)
            assert product.tolist() == expected, (public, name)


@given(
    degree=st.sampled_from([8, 16, 64]),
    modulus_bits=st.integers(8, 57),
    largest=st.sampled_from([1, 83, 32_760, 2**20]),
    data=st.data(),
)
@settings(max_examples=60)
def test_products_are_those_of_the_schoolbook(
    degree: int, modulus_bits: int, largest: int, data: st.DataObject
) -> None:
    whole = st.integers(0, (1 << modulus_bits) - 1)
    public = data.draw(st.lists(whole, min_size=degree, max_size=degree))
    signed = st.integers(-largest, largest)
    short = np.array(data.draw(st.lists(signed, min_size=degree, max_size=degree)), dtype=np.int64)
    row = np.array(public, dtype=np.uint64)
    product = multiply(row, ShortPolynomial(short), modulus_bits=modulus_bits).tolist()
    assert product == by_schoolbook(row, short, modulus_bits)
    assert product == by_whole_numbers(row, short, modulus_bits)


@pytest.mark.parametrize("blocks", [1, 7, 8, 9, 17])
def test_many_rows_are_multiplied_as_each_alone(blocks: int) -> None:
    short = ShortPolynomial(draw(2048, fixed_stream(3)))
    public = public_polynomials(b"rows", range(blocks), degree=2048, modulus_bits=43)
    together = multiply(public, short, modulus_bits=43)
    alone = [multiply(row, short, modulus_bits=43) for row in public]
    assert (together == np.stack(alone)).all()


@pytest.mark.parametrize(
    ("teachers", "degree", "modulus_bits", "pieces"),
    [
        (1, 1024, 26, 1),
        (20, 1024, 26, 1),
        (1000, 1024, 22, 1),
        (1, 2048, 43, 2),
        (250, 2048, 47, 2),
        (1000, 2048, 43, 2),
    ],
)
def test_secrets_and_their_sums_take_as_few_pieces_as_planned(
    teachers: int, degree: int, modulus_bits: int, pieces: int
) -> None:
    stream = fixed_stream(4)
    total = sum((draw(degree, stream) for _ in range(teachers)), np.zeros(degree, dtype=np.int64))
    assert ShortPolynomial(total).pieces_for(modulus_bits) == pieces


@pytest.mark.parametrize("largest", [83, 3000])
@pytest.mark.parametrize("piece_bits", [14, 22, 26])
def test_the_rounding_seen_is_within_the_proved_bound(piece_bits: int, largest: int) -> None:
    """The distance from integers is seen before rounding, on the worst inputs that we know."""
    for short in shorts(2048, largest).values():
        prepared = ShortPolynomial(short)
        for public in extremes(2048, piece_bits).values():
            transform = ring._transformed(centre(public, piece_bits)) * prepared._transform
            folded = np.fft.ifft(transform) * ring._twist(1024).conj()
            # Not modulo 2^piece_bits: the piece has a sign, so it is multiplied as such.
            exact = by_whole_numbers(centre(public, piece_bits).view(np.uint64), short, 62)
            wanted = centre(np.array(exact, dtype=np.uint64), 62).astype(np.float64)
            seen = np.concatenate([folded.real, folded.imag])
            assert np.abs(seen - wanted).max() <= prepared.rounding_bound(piece_bits)


@pytest.mark.parametrize("piece_bits", [8, 22])
@pytest.mark.parametrize("name", list(shorts(64, 1)))
def test_the_bound_is_the_formula_with_the_true_peak(name: str, piece_bits: int) -> None:
    """The values at all roots of X^64 + 1 are worked out one by one, the norms from them."""
    short = shorts(64, 3000)[name]
    roots = np.exp(1j * np.pi * np.arange(1, 128, 2) / 64)
    peak = max(abs(sum(int(c) * root**j for j, c in enumerate(short))) for root in roots)
    one, norm = (8 * 5 + 12) * 2.0**-53, math.sqrt(int((short**2).sum()))
    formula = (2 * one + 3 * 2.0**-53) * norm + one * peak
    expected = 1.01 * 2 ** (piece_bits - 1) * 8 * formula
    assert ShortPolynomial(short).rounding_bound(piece_bits) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("half", [512, 1024])
def test_the_twist_is_right_to_eight_units(half: int) -> None:
    with gmpy2.context(precision=120):
        angle = gmpy2.const_pi() / (2 * half)
        exact = [(gmpy2.cos(angle * place), gmpy2.sin(angle * place)) for place in range(half)]
        worst = max(
            math.hypot(float(cosine - value.real), float(sine - value.imag))
            for (cosine, sine), value in zip(exact, ring._twist(half).tolist(), strict=True)
        )
    assert worst < 8 * 2.0**-53


@pytest.mark.parametrize("length", [512, 1024])
def test_the_weights_of_the_transform_are_right_to_two_units_per_level(length: int) -> None:
    """The transform of a unit vector is a row of weights, each a product over the levels."""
    unit = np.zeros(length, dtype=np.complex128)
    unit[1] = 1
    with gmpy2.context(precision=120):
        angle = -2 * gmpy2.const_pi() / length
        worst = max(
            math.hypot(
                float(gmpy2.cos(angle * place) - value.real),
                float(gmpy2.sin(angle * place) - value.imag),
            )
            for place, value in enumerate(np.fft.fft(unit).tolist())
        )
    assert worst < 8 * math.log2(length) * 2.0**-53


def test_a_piece_too_many_for_the_bound_is_never_taken() -> None:
    short = ShortPolynomial(np.full(2048, 32_760))
    for bits in range(8, 58):
        pieces = short.pieces_for(bits)
        assert short.rounding_bound(-(-bits // pieces)) < 0.45
        assert pieces == 1 or short.rounding_bound(-(-bits // (pieces - 1))) >= 0.45


def test_public_polynomials_differ_by_seed_block_degree_and_modulus() -> None:
    def first(seed: bytes, block: int, degree: int, bits: int) -> int:
        made = ring.public_polynomial(seed, block, degree=degree, modulus_bits=bits)
        assert made.shape == (degree,)
        assert int(made.max()) >> bits == 0
        return int(made[0]) % 2**20

    variants = [(b"a", 0, 1024, 26), (b"b", 0, 1024, 26), (b"a", 1, 1024, 26)]
    variants += [(b"a", 0, 2048, 26), (b"a", 0, 1024, 27), (b"a\0", 0, 1024, 26)]
    assert len({first(*variant) for variant in variants}) == len(variants)


def test_public_coefficients_fill_the_whole_range() -> None:
    """Every bit of 57,344 coefficients is set in half of them, but for six deviations."""
    drawn = public_polynomials(b"bits", range(28), degree=2048, modulus_bits=43)
    for bit in range(43):
        ones = int(((drawn >> np.uint64(bit)) & np.uint64(1)).sum())
        assert abs(ones - drawn.size / 2) < 6 * math.sqrt(drawn.size) / 2


@given(st.integers(8, 57), st.integers(0, 2**57 - 1))
def test_centring_keeps_the_residue(bits: int, value: int) -> None:
    element = np.array([value % 2**bits], dtype=np.uint64)
    centred = int(centre(element, bits)[0])
    assert -(2 ** (bits - 1)) <= centred < 2 ** (bits - 1)
    assert centred % 2**bits == value % 2**bits
    assert ring.reduce(np.array([centred]), bits).tolist() == element.tolist()


def test_a_short_polynomial_is_not_printed() -> None:
    assert "7" not in repr(ShortPolynomial(np.full(8, 7)))


@pytest.mark.parametrize(
    "short",
    [
        np.zeros(8, dtype=np.int32),
        np.zeros((2, 8), dtype=np.int64),
        np.zeros(12, dtype=np.int64),
        np.zeros(4, dtype=np.int64),
        np.full(8, 2**20 + 1),
        np.full(8, -(2**63)),
    ],
)
def test_what_is_not_short_is_refused(short: Integers) -> None:
    with pytest.raises(InputError):
        ShortPolynomial(short)


def test_rows_of_another_ring_are_refused() -> None:
    short = ShortPolynomial(np.ones(8, dtype=np.int64))
    others: list[np.ndarray] = [np.zeros(16, dtype=np.uint64), np.zeros(8, dtype=np.int64)]
    for public in others:
        with pytest.raises(InputError, match="rows of 8"):
            multiply(public, short, modulus_bits=20)
    for bits in (0, 58):
        with pytest.raises(InputError, match="1 to 57 bits"):
            multiply(np.zeros(8, dtype=np.uint64), short, modulus_bits=bits)
