"""Runs inside a peer's own environment: every party's work, for one class of one label or a batch.

Reads the work as JSON from standard input and prints processor seconds, and the bytes of what a
teacher sends. It must not import dppp, which is not installed there.
"""

import importlib
import json
import sys
import time
from typing import Any

import gmpy2

BFV_SLOTS = 4096
BFV_PLAIN_MODULUS = 1032193
"""A prime that is 1 modulo twice the slots, so that they can be used apart; sums have 16 bits."""


def run_damgard_jurik(work: dict[str, Any]) -> dict[str, Any]:
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
    seconds = time.process_time() - started
    # A ballot and a decryption share, each modulo n².
    return _answer(work, seconds, total, sent=2 * (2 * work["modulus_bits"] // 8))


def run_phe(work: dict[str, Any]) -> dict[str, Any]:
    """Encrypt, add, decrypt with the one private key."""
    phe: Any = importlib.import_module("phe")
    public, private = phe.generate_paillier_keypair(n_length=work["modulus_bits"])
    started = time.process_time()
    ciphertexts = [public.encrypt(entry) for entry in work["entries"]]
    tally = ciphertexts[0]
    for ciphertext in ciphertexts[1:]:
        tally = tally + ciphertext
    total = int(private.decrypt(tally))
    seconds = time.process_time() - started
    return _answer(work, seconds, total, sent=2 * work["modulus_bits"] // 8)


def _answer(work: dict[str, Any], seconds: float, total: int, *, sent: int) -> dict[str, Any]:
    """One class of one label stands for all of them."""
    return {
        "seconds_per_label": seconds * work["classes"],
        "bytes_sent_per_label": sent * work["classes"],
        "sum_is_right": total == sum(work["entries"]),
    }


def run_tenseal(work: dict[str, Any]) -> dict[str, Any]:
    """BFV, a whole batch: entries share ciphertexts. Of equal teachers one encrypts for all.

    One teacher's encryption is measured and counted N times; the aggregator reads and adds N
    ballots and decrypts. The one secret key is the aggregator's.
    """
    tenseal: Any = importlib.import_module("tenseal")
    context = tenseal.context(
        tenseal.SCHEME_TYPE.BFV,
        poly_modulus_degree=BFV_SLOTS,
        plain_modulus=BFV_PLAIN_MODULUS,
        n_threads=1,
    )
    teachers, count = work["teachers"], work["labels"] * work["classes"]
    entries = [work["entries"][place % teachers] for place in range(count)]
    chunks = [entries[start : start + BFV_SLOTS] for start in range(0, count, BFV_SLOTS)]
    started = time.process_time()
    ballot = [tenseal.bfv_vector(context, chunk).serialize() for chunk in chunks]
    encrypted = time.process_time()
    sums: list[int] = []
    for sealed in ballot:
        tally = tenseal.bfv_vector_from(context, sealed)
        for _ in range(teachers - 1):
            tally += tenseal.bfv_vector_from(context, sealed)
        sums += tally.decrypt()
    decrypted = time.process_time()
    seconds = teachers * (encrypted - started) + decrypted - encrypted
    return {
        "seconds_per_label": seconds / work["labels"],
        "bytes_sent_per_label": sum(map(len, ballot)) / work["labels"],
        "sum_is_right": sums == [teachers * entry for entry in entries],
    }


def main() -> None:
    """Measure the peer that the work names."""
    work = json.load(sys.stdin)
    runs = {"damgard-jurik": run_damgard_jurik, "phe": run_phe, "tenseal": run_tenseal}
    sys.stdout.write(json.dumps(runs[work["peer"]](work)))


if __name__ == "__main__":
    main()
