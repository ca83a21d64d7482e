"""The protocol's room for the cryptosystem `masks`: its messages, and both sides of a batch."""
