"""How a federation comes about: each organisation's keys, the files they exchange, certificates."""
