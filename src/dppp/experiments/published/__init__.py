"""Parameters that others published, put through the exact accounting of `dppp.privacy`."""
