"""The public datasets of the paper's evaluation: found, checked and read."""
