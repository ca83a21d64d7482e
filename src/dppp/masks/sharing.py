"""Packed secret sharing over GF(65521) (Shamir 1979; Franklin, Yung 1992).

A teacher deals its secret: `packed` values at a time lie on one polynomial of degree below
`rows_needed`, and teacher i gets the value at point i of each polynomial, its row. The secret
values are at the points after the last teacher's, N + 1 … N + packed. The rows of the first
rows_needed - packed teachers are drawn; they and the secret fix the polynomial. So any rows_needed
rows give the secret, and any rows_needed - packed tell nothing. Rows of several dealers add up to
rows of the sum of their secrets.

Field elements are below 2^16 and matrices have fewer than 2^16 columns, so sums of products stay
below 2^48: products of matrices in float64 are exact, whatever the order of additions.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dppp.errors import EncodingError, InputError, PaddingFault, RowsError
from dppp.masks.gaussian import RandomStream
from dppp.masks.parameters import FIELD

Elements = NDArray[np.uint16]
Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_MULTIPLICATIONS_AT_ONCE = 2**18


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How a secret is dealt to all teachers, and put together from rows."""

    teachers: int
    rows_needed: int
    packed: int

    def __post_init__(self) -> None:
        if not 1 <= self.packed <= self.rows_needed <= self.teachers:
            raise InputError(
                f"packed, rows needed and teachers must not fall, got {self.packed}, "
                f"{self.rows_needed} and {self.teachers}"
            )
        if self.teachers + self.packed >= FIELD:
            raise InputError(f"at most {FIELD - 1} teachers and packed values have a point")

    @property
    def drawn_rows(self) -> int:
        """Rows that the dealer draws: this many tell nothing."""
        return self.rows_needed - self.packed

    def columns_for(self, length: int) -> int:
        """Field elements in a row of a secret of this length."""
        if length < 1:
            raise InputError(f"a secret has at least one value, got {length}")
        return -(-length // self.packed)

    def deal(self, secret: Integers, random_stream: RandomStream) -> Elements:
        """The rows of all teachers, teacher 1's first, from fresh random bytes; by the dealer."""
        columns = self.columns_for(len(secret))
        drawn = draw_elements(self.drawn_rows * columns, random_stream)
        return self.deal_from(secret, drawn.reshape(self.drawn_rows, columns))

    def deal_from(self, secret: Integers, drawn: Elements) -> Elements:
        """The rows of all teachers, where those of the first teachers are already drawn."""
        columns = self.columns_for(len(secret))
        if drawn.shape != (self.drawn_rows, columns):
            raise InputError(f"{self.drawn_rows} rows of {columns} elements are to be drawn")
        _require_elements(drawn)
        _require_centred(secret)
        padded = np.zeros(columns * self.packed, dtype=np.float64)
        padded[: len(secret)] = secret
        known = np.concatenate([padded.reshape(columns, self.packed).T, drawn])
        rows = np.empty((self.teachers, columns), dtype=np.uint16)
        rows[: self.drawn_rows] = drawn
        rows[self.drawn_rows :] = _times(_dealing_matrix(self), known)
        return rows

    def combine(self, indices: Sequence[int], rows: Elements, length: int) -> Integers:
        """The secret, or sum of secrets, of this length: values nearest to 0; by anyone.

        `rows` are those of the teachers with these indices, in the same order: exactly as many as
        are needed. Values past the length were never dealt and must be zero.
        """
        columns = self.columns_for(length)
        self._require_indices(indices)
        if rows.shape != (self.rows_needed, columns):
            raise RowsError(
                f"{self.rows_needed} rows of {columns} elements are needed, got {rows.shape}"
            )
        _require_elements(rows)
        values = _times(_combining_matrix(self, tuple(indices)), rows.astype(np.float64))
        # The values at one polynomial's points are neighbours in the secret.
        values = values.T.reshape(-1)
        if values[length:].any():
            raise PaddingFault("a dealt secret is longer than it should be")
        return np.where(values > FIELD // 2, values - FIELD, values)[:length]

    def combine_many(self, indices: Sequence[int], rows: Elements, columns: int) -> Integers:
        """Many secrets of `columns` columns each, which follow each other in every row.

        One secret per line of the result, padding and all, values nearest to 0.
        """
        self._require_indices(indices)
        if rows.ndim != 2 or len(rows) != self.rows_needed or rows.shape[1] % columns:
            raise RowsError(f"{self.rows_needed} rows of as many secrets each are needed")
        _require_elements(rows)
        values = _modulo_field(_combining_matrix(self, tuple(indices)) @ rows.astype(np.float64))
        values = values.T.reshape(-1, columns * self.packed)
        return np.where(values > FIELD // 2, values - FIELD, values)

    def _require_indices(self, indices: Sequence[int]) -> None:
        if len(indices) != self.rows_needed or len(set(indices)) != len(indices):
            raise RowsError(f"rows of {self.rows_needed} distinct teachers are needed")
        if min(indices) < 1 or max(indices) > self.teachers:
            raise RowsError(f"teachers have indices 1 to {self.teachers}, got {list(indices)}")


def add_rows(rows: Elements) -> Elements:
    """One teacher's rows of many dealers, added up: its row of the sum of their secrets."""
    _require_elements(rows)
    total: NDArray[np.uint64] = rows.sum(axis=0, dtype=np.uint64)
    return (total % np.uint64(FIELD)).astype(np.uint16)


def draw_elements(count: int, random_stream: RandomStream) -> Elements:
    """Uniform field elements: two bytes each, little-endian; those too large are left out.

    As many are read as are missing, again and again, so the source must be a stream.
    """
    kept = np.empty(0, dtype=np.uint16)
    while len(kept) < count:
        data = random_stream(2 * (count - len(kept)))
        if len(data) != 2 * (count - len(kept)):
            raise InputError("the source of randomness gave another number of bytes")
        drawn = np.frombuffer(data, dtype="<u2")
        kept = np.concatenate([kept, drawn[drawn < FIELD]])
    return kept


def elements_to_bytes(elements: Elements) -> bytes:
    """Two bytes per element, little-endian."""
    _require_elements(elements)
    return elements.astype("<u2").tobytes()


def elements_from_bytes(data: bytes, count: int) -> Elements:
    """Read `count` elements; other lengths, and numbers not below the prime, are refused."""
    if len(data) != 2 * count:
        raise EncodingError(f"{count} field elements take {2 * count} bytes, got {len(data)}")
    elements = np.frombuffer(data, dtype="<u2").astype(np.uint16)
    if count and int(elements.max()) >= FIELD:
        raise EncodingError(f"a field element is not below {FIELD}")
    return elements


@functools.lru_cache(maxsize=8)
def _dealing_matrix(sharing: Sharing) -> Floats:
    """From packed values and drawn rows to the other rows."""
    first = sharing.drawn_rows + 1
    return _interpolation(
        [*_secret_points(sharing), *range(1, first)], range(first, sharing.teachers + 1)
    )


@functools.lru_cache(maxsize=8)
def _combining_matrix(sharing: Sharing, indices: tuple[int, ...]) -> Floats:
    """From the rows of these teachers to the packed values."""
    return _interpolation(indices, _secret_points(sharing))


def _secret_points(sharing: Sharing) -> range:
    return range(sharing.teachers + 1, sharing.teachers + sharing.packed + 1)


def _interpolation(known: Sequence[int], wanted: Sequence[int]) -> Floats:
    """The matrix from values at the known points to values at the wanted ones, none of them known.

    Lagrange: at x the polynomial is Π (x - x_j) · Σ_i y_i / ((x - x_i) · Π_(j≠i) (x_i - x_j)).
    """
    sources, targets = np.array(known), np.array(wanted)
    inverses = _inverses(int(max(*sources, *targets)))
    away = targets[:, None] - sources
    between = inverses[sources[:, None] - sources]
    np.fill_diagonal(between, 1)
    weights = inverses[away] * _product(between) % FIELD
    matrix: Floats = (_product(away % FIELD)[:, None] * weights % FIELD).astype(np.float64)
    matrix.flags.writeable = False
    return matrix


def _product(factors: Integers) -> Integers:
    """The product of each row in the field, by halves."""
    while factors.shape[1] > 1:
        half = factors.shape[1] // 2
        left = factors[:, 2 * half :]
        factors = factors[:, :half] * factors[:, half : 2 * half] % FIELD
        factors = np.concatenate([factors, left], axis=1)
    return factors[:, 0]


def _inverses(largest: int) -> Integers:
    """Inverses of -largest … largest, to be indexed by these numbers; that of 0 is given as 0."""
    inverses = np.zeros(2 * largest + 1, dtype=np.int64)
    for number in range(1, largest + 1):
        inverses[number] = pow(number, -1, FIELD)
        inverses[-number] = FIELD - inverses[number]
    return inverses


def _times(matrix: Floats, values: Floats) -> Integers:
    """The product in the field, in tiles so small that the linear algebra keeps to one thread.

    OpenBLAS shares larger products out, and where the other processors are busy its threads wait
    for each other: 40 ms were seen for dealing to 100 teachers, which takes 0.07 ms on one.
    """
    inner, columns = values.shape
    wide = max(1, min(columns, _MULTIPLICATIONS_AT_ONCE // inner))
    high = max(1, _MULTIPLICATIONS_AT_ONCE // (inner * wide))
    product = np.empty((len(matrix), columns), dtype=np.float64)
    for top in range(0, len(matrix), high):
        for left in range(0, columns, wide):
            tile = matrix[top : top + high] @ values[:, left : left + wide]
            product[top : top + high, left : left + wide] = tile
    return _modulo_field(product)


def _modulo_field(values: Floats) -> Integers:
    whole = values.astype(np.int64)
    # A division by a constant is vectorised in numpy, a remainder is not.
    return whole - whole // FIELD * FIELD


def _require_elements(elements: Elements) -> None:
    if elements.dtype != np.uint16:
        raise InputError(f"field elements are uint16, got {elements.dtype}")
    if elements.size and int(elements.max()) >= FIELD:
        raise RowsError(f"a field element is not below {FIELD}")


def _require_centred(secret: Integers) -> None:
    if secret.dtype != np.int64 or secret.ndim != 1:
        raise InputError("a secret to deal is one row of int64")
    if max(int(secret.max()), -int(secret.min())) > FIELD // 2:
        raise InputError("a secret to deal has values outside the field")
