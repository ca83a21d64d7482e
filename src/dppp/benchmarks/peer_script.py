"""Runs inside a peer's own environment: one class of one label, every party's work.

Reads the work as JSON from standard input and prints processor seconds. It must not import dppp,
which is not installed there.
"""

import importlib
import json
import sys
import time
from typing import Any

import gmpy2


def run_damgard_jurik(work: dict[str, Any]) -> tuple[float, int]:
    """Encrypt, add, decrypt by threshold, on our primes: its own search takes minutes."""
    crypto: Any = importlib.import_module("damgard_jurik.crypto")
    primes = tuple(gmpy2.mpz(prime) for prime in work["primes"])
    crypto.gen_safe_prime_pair = lambda _bits: primes
    public, ring = crypto.keygen(
        n_bits=work["modulus_bits"],
        s=1,
        threshold=work["threshold"],
        n_shares=work["teachers"],
    )
    started = time.process_time()
    ciphertexts = [public.encrypt(entry) for entry in work["entries"]]
    tally = ciphertexts[0]
    for ciphertext in ciphertexts[1:]:
        tally = tally + ciphertext
    total = int(ring.decrypt(tally))
    return time.process_time() - started, total


def run_phe(work: dict[str, Any]) -> tuple[float, int]:
    """Encrypt, add, decrypt with the one private key."""
    phe: Any = importlib.import_module("phe")
    public, private = phe.generate_paillier_keypair(n_length=work["modulus_bits"])
    started = time.process_time()
    ciphertexts = [public.encrypt(entry) for entry in work["entries"]]
    tally = ciphertexts[0]
    for ciphertext in ciphertexts[1:]:
        tally = tally + ciphertext
    total = int(private.decrypt(tally))
    return time.process_time() - started, total


def main() -> None:
    """Measure the peer that the work names."""
    work = json.load(sys.stdin)
    run = {"damgard-jurik": run_damgard_jurik, "phe": run_phe}[work["peer"]]
    seconds, total = run(work)
    answer = {"seconds": seconds, "sum_is_right": total == sum(work["entries"])}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
