"""Settings for all tests."""

from hypothesis import settings

# These machines are shared and noisy: no test asserts a time (CONVENTIONS.md, 28).
settings.register_profile("dppp", deadline=None)
settings.load_profile("dppp")
