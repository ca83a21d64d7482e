"""Carries bytes between an aggregator and teachers over Flower; cannot read what is in them."""
