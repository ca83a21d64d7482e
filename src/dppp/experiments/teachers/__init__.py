"""The ensembles of the paper's evaluation: how teachers are trained, and their stored votes."""
