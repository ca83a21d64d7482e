"""Stores in one SQLite file each."""
