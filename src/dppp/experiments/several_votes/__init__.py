"""Several votes per teacher: what they buy, and who gains by company."""
