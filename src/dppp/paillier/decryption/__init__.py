"""Threshold decryption: shares, their combination, and openings that anyone can check.

`root` is the default: Shoup's threshold RSA with exponent n^s. `paper` is Equation 3 of the paper,
for comparison. A key is dealt for one of them. Shares of both are made alike, in `shares`;
`combination` chooses by the key.
"""
