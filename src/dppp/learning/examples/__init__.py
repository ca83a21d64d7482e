"""Federations to try things on: the demo's hospitals, and models for a local federation."""
