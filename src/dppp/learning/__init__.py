"""Models, the estimator and the student: for people who know scikit-learn."""
