"""For the person who has data: models, an estimator, planning, a student."""
