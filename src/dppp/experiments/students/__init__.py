"""Five ensembles for each dataset, and students of them that differ in one thing at a time."""
