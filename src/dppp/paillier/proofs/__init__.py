"""Proofs that ballots are known to who sends them, and that decryption shares are right."""
