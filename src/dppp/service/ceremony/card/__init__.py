"""The privacy card: what a task promises and does not, for a person and for a registry."""
