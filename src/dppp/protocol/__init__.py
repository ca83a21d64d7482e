"""The roles without I/O: what they agree on, what they say, what they refuse."""
