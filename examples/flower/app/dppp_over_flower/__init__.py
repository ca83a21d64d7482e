"""Carries bytes between an aggregator and teachers over Flower; knows nothing of what is in them."""
