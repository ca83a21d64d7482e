"""The protocol's room for the cryptosystem `paillier`: both sides of a batch."""
