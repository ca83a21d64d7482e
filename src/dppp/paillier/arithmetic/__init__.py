"""Number theory under the cryptosystem: powers, primes, interpolation. Knows no keys."""
