"""What things cost: processor time, as ratios to a reference of the same run."""
