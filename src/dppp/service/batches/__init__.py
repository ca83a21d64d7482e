"""Runs an aggregator's batches: gives the role a clock, a thread and a channel to the teachers."""
