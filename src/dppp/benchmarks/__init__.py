"""What the cryptography costs: processor time, as ratios to a reference of the same run."""
