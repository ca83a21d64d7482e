"""How much noise a promise needs, and what answers cost."""
