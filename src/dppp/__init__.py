"""Distributed privacy-preserving prediction."""

__version__ = "0.1.0"
