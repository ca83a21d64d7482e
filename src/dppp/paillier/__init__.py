"""Threshold Paillier and Damgard-Jurik encryption."""
