"""Threshold decryption: shares, their combination, and openings that anyone can check.

`root` is the default; `paper` is Equation 3 for comparison. A key is dealt for one of them, and
`shares` and `combination` choose by the key.
"""
