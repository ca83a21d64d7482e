"""The experiments: datasets, teachers, figures (needs the extra `experiments`)."""
