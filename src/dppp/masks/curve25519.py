"""Points of Curve25519 with both coordinates, in plain Python: for disputes only.

X25519 itself (RFC 7748) is done by `cryptography` and knows only u-coordinates. A proof about
logarithms has to add points, so this lifts a u-coordinate to the Edwards form of the same curve
(RFC 8032, section 5.1: y = (u - 1) / (u + 1)) and computes there in extended coordinates, whose
addition law has no exceptions. Not in constant time: Python's integers are not.
"""

from dppp.errors import GroupElementError

PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
COFACTOR = 8
ENCODED_BYTES = 32

Point = tuple[int, int, int, int]
"""Extended coordinates X, Y, Z, T with x = X / Z, y = Y / Z, x·y = T / Z."""

_MONTGOMERY_A = 486662
_EDWARDS_D = 37095705934669439343138083508754565189542113879843219016388785533085940283555
_ROOT_OF_MINUS_ONE = 19681161376707505956807079304988542015446066515923890162744021073123829784752
_BASE_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_BASE_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960
_SCALAR_BITS = 256

IDENTITY: Point = (0, 1, 1, 0)
BASE: Point = (_BASE_X, _BASE_Y, 1, _BASE_X * _BASE_Y % PRIME)

# The points on the curve whose eightfold is the identity: of order 2, 4, 8 and 8.
LOW_ORDER_U = frozenset(
    (
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
    )
)


def decode_u(encoded: bytes) -> int:
    """The u-coordinate in 32 bytes, least significant first; only the canonical encoding."""
    u = int.from_bytes(encoded, "little")
    if len(encoded) != ENCODED_BYTES or u >= PRIME:
        raise GroupElementError("a u-coordinate must be 32 bytes that encode less than 2^255 - 19")
    return u


def is_on_curve(u: int) -> bool:
    """Is u the coordinate of a point on the curve itself, and not on its twist?"""
    square = u * (u * u + _MONTGOMERY_A * u + 1) % PRIME
    return pow(square, (PRIME - 1) // 2, PRIME) in (0, 1)


def edwards_y(u: int) -> int:
    """The Edwards y-coordinate of both points whose u-coordinate this is."""
    if u == PRIME - 1:
        raise GroupElementError("the u-coordinate -1 belongs to the twist")
    return (u - 1) * pow(u + 1, -1, PRIME) % PRIME


def lift(u: int, *, is_odd: bool) -> Point:
    """The point with this u-coordinate whose Edwards x-coordinate is odd, or the even one."""
    y = edwards_y(u)
    square = (y * y - 1) * pow(_EDWARDS_D * y * y + 1, -1, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if x * x % PRIME != square:
        x = x * _ROOT_OF_MINUS_ONE % PRIME
    if x * x % PRIME != square:
        raise GroupElementError("the u-coordinate belongs to a point on the twist")
    if x & 1 != is_odd:
        x = -x % PRIME
    return (x, y, 1, x * y % PRIME)


def encode(point: Point) -> bytes:
    """The canonical 32 bytes of a point: y, and the lowest bit of x on top (RFC 8032)."""
    inverse = pow(point[2], -1, PRIME)
    x, y = point[0] * inverse % PRIME, point[1] * inverse % PRIME
    return (y | (x & 1) << 255).to_bytes(ENCODED_BYTES, "little")


def are_equal(one: Point, other: Point) -> bool:
    """Are these the same point, whatever their denominators?"""
    return (one[0] * other[2] - other[0] * one[2]) % PRIME == 0 and (
        one[1] * other[2] - other[1] * one[2]
    ) % PRIME == 0


def negate(point: Point) -> Point:
    """The inverse of a point."""
    return (PRIME - point[0], point[1], point[2], PRIME - point[3])


def add(one: Point, other: Point) -> Point:
    """The sum of two points (RFC 8032, section 5.1.4; complete, also for doublings)."""
    a = (one[1] - one[0]) * (other[1] - other[0]) % PRIME
    b = (one[1] + one[0]) * (other[1] + other[0]) % PRIME
    c = 2 * one[3] * other[3] * _EDWARDS_D % PRIME
    d = 2 * one[2] * other[2] % PRIME
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def double(point: Point) -> Point:
    """Twice a point."""
    a, b = point[0] * point[0] % PRIME, point[1] * point[1] % PRIME
    h, total = a + b, point[0] + point[1]
    e, g = h - total * total, a - b
    f = 2 * point[2] * point[2] + g
    return (e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME)


def multiply(scalar: int, point: Point) -> Point:
    """A multiple of a point; the same steps for every scalar, as it may be a secret."""
    result = IDENTITY
    for position in reversed(range(_SCALAR_BITS)):
        result = double(result)
        candidates = (result, add(result, point))
        result = candidates[scalar >> position & 1]
    return result


def multiply_two(first: int, one: Point, second: int, other: Point) -> Point:
    """The sum of two multiples, for scalars that everybody may know (Straus 1964)."""
    table = (None, one, other, add(one, other))
    result = IDENTITY
    for position in reversed(range(max(first.bit_length(), second.bit_length()))):
        result = double(result)
        chosen = table[(first >> position & 1) | (second >> position & 1) << 1]
        if chosen is not None:
            result = add(result, chosen)
    return result


def clear_cofactor(point: Point) -> Point:
    """Eight times a point: what is left is in the subgroup of prime order."""
    return double(double(double(point)))


def is_of_prime_order(point: Point) -> bool:
    """Is the point in the subgroup of prime order, and not its identity?"""
    is_member = are_equal(multiply_two(ORDER, point, 0, IDENTITY), IDENTITY)
    return is_member and not are_equal(point, IDENTITY)
