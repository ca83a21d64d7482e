"""Threshold Paillier and Damgard-Jurik encryption, with results that anyone can check.

In the order of the protocol: `dealer` makes keys, `keys` holds them; a teacher uses
`packing`, `blinding` (and `blinding_pool`), `encryption` and `ballot_proofs`; the aggregator adds
with `encryption`; teachers use `decryption.shares` and, when asked, `share_proofs`; whoever has the
shares uses `decryption.combination`, and anyone can check with `decryption.opening`. The
mathematics is in docs/protocol.md. Nobody outside this project has reviewed it.

Integers are gmpy2.mpz throughout. Every function that draws takes its source of random bytes.
"""
