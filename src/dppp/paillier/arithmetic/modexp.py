"""Modular exponentiation: secret exponents in constant time, and no lock held meanwhile.

For a secret exponent libcrypto's constant-time exponentiation is called by ctypes, which
lets other threads run; gmpy2's ``powmod_sec`` stands in where libcrypto cannot be found.
Conversions between Python and libcrypto, and the length of an exponent in words, are outside this
promise. For a public exponent whichever of the two is faster is used. Run by every party.
"""

import contextlib
import ctypes
import functools
import threading
from collections import OrderedDict

import gmpy2
from gmpy2 import mpz

_LIBRARY_NAMES = (
    "libcrypto.so.3",
    "libcrypto.so.1.1",
    "libcrypto.3.dylib",
    "libcrypto-3-x64.dll",
)
_BN_FLG_CONSTTIME = 0x04
_MODULI_KEPT_PER_THREAD = 8
# libcrypto is faster on moduli up to about this length, by a quarter at 2048 bits, and gmpy2 above.
_LIBCRYPTO_BITS = 6144
# A few words are not worth the way to libcrypto and back.
_SHORT_EXPONENT_BITS = 128

_pointer = ctypes.c_void_p
# Name in libcrypto: (type of the result, types of the arguments).
_SIGNATURES = {
    "BN_new": (_pointer, []),
    "BN_clear_free": (None, [_pointer]),
    "BN_bin2bn": (_pointer, [ctypes.c_char_p, ctypes.c_int, _pointer]),
    "BN_bn2binpad": (ctypes.c_int, [_pointer, ctypes.c_char_p, ctypes.c_int]),
    "BN_set_flags": (None, [_pointer, ctypes.c_int]),
    "BN_CTX_new": (_pointer, []),
    "BN_CTX_free": (None, [_pointer]),
    "BN_MONT_CTX_new": (_pointer, []),
    "BN_MONT_CTX_set": (ctypes.c_int, [_pointer, _pointer, _pointer]),
    "BN_MONT_CTX_free": (None, [_pointer]),
    "BN_mod_exp_mont_consttime": (ctypes.c_int, [_pointer] * 6),
}


@functools.cache
def load_libcrypto() -> ctypes.CDLL | None:
    """Find libcrypto and give it the signatures used here; None where there is none."""
    for name in _LIBRARY_NAMES:
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(name)
            for function, (result, arguments) in _SIGNATURES.items():
                getattr(library, function).restype = result
                getattr(library, function).argtypes = arguments
            return library
    return None


class _Modulus:
    """What libcrypto keeps for one odd modulus in one thread."""

    def __init__(self, library: ctypes.CDLL, modulus: mpz) -> None:
        self._library = library
        self._length = (modulus.bit_length() + 7) // 8
        self._modulus = self._number(modulus)
        self._scratch = library.BN_CTX_new()
        self._montgomery = library.BN_MONT_CTX_new()
        self._result = library.BN_new()
        self._buffer = ctypes.create_string_buffer(self._length)
        if not library.BN_MONT_CTX_set(self._montgomery, self._modulus, self._scratch):
            raise ValueError("the modulus of an exponentiation must be odd")

    def __del__(self) -> None:
        self._library.BN_clear_free(self._result)
        self._library.BN_MONT_CTX_free(self._montgomery)
        self._library.BN_CTX_free(self._scratch)
        self._library.BN_clear_free(self._modulus)

    def _number(self, value: mpz) -> int:
        data = value.to_bytes((value.bit_length() + 7) // 8, "big")
        number: int = self._library.BN_bin2bn(data, len(data), None)
        return number

    def power(self, base: mpz, exponent: mpz) -> mpz:
        library = self._library
        base_number, exponent_number = self._number(base), self._number(exponent)
        library.BN_set_flags(exponent_number, _BN_FLG_CONSTTIME)
        done = library.BN_mod_exp_mont_consttime(
            self._result,
            base_number,
            exponent_number,
            self._modulus,
            self._scratch,
            self._montgomery,
        )
        library.BN_clear_free(base_number)
        library.BN_clear_free(exponent_number)
        if not done:
            raise MemoryError("libcrypto could not exponentiate")
        library.BN_bn2binpad(self._result, self._buffer, self._length)
        return mpz.from_bytes(self._buffer.raw, "big")


_kept = threading.local()


def _prepared(library: ctypes.CDLL, modulus: mpz) -> _Modulus:
    moduli: OrderedDict[mpz, _Modulus] = _kept.__dict__.setdefault("moduli", OrderedDict())
    if modulus not in moduli:
        moduli[modulus] = _Modulus(library, modulus)
        if len(moduli) > _MODULI_KEPT_PER_THREAD:
            moduli.popitem(last=False)
    moduli.move_to_end(modulus)
    return moduli[modulus]


def power_secret(base: mpz, exponent: mpz, modulus: mpz) -> mpz:
    """base^exponent mod an odd modulus, for an exponent >= 0 that must stay secret."""
    library = load_libcrypto()
    if library is None:
        return power_secret_gmp(base, exponent, modulus)
    return _prepared(library, modulus).power(base % modulus, exponent)


def power_secret_gmp(base: mpz, exponent: mpz, modulus: mpz) -> mpz:
    """The same by gmpy2: where there is no libcrypto."""
    if exponent == 0:
        return mpz(1)
    return gmpy2.powmod_sec(base, exponent, modulus)


def power_public(base: mpz, exponent: mpz, modulus: mpz) -> mpz:
    """base^exponent mod an odd modulus, for a public exponent, without Python's lock.

    A base with a negative exponent must have an inverse.
    """
    if modulus.bit_length() <= _LIBCRYPTO_BITS and exponent.bit_length() > _SHORT_EXPONENT_BITS:
        positive = gmpy2.invert(base, modulus) if exponent < 0 else base
        return power_secret(positive, abs(exponent), modulus)
    context = gmpy2.get_context()
    before = context.allow_release_gil
    context.allow_release_gil = True
    try:
        return gmpy2.powmod(base, exponent, modulus)
    finally:
        context.allow_release_gil = before
