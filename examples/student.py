"""A student: twenty private labels from the real protocol, then answers for free, without limit."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp import PrivateVotingClassifier, StudentClassifier

data = load_breast_cancer()
names = data.target_names[data.target]
X_private, X_rest, y_private, y_rest = train_test_split(data.data, names, test_size=270)
X_public, X_test, y_public, y_test = train_test_split(X_rest, y_rest, test_size=100)
scale = StandardScaler().fit(X_public).transform  # of public records only: it must not tell

# Twenty hospitals agree on a promise for twenty queries in all.
hospitals = PrivateVotingClassifier(SVC(), n_teachers=20, epsilon=8, delta=1e-5, queries=20)
hospitals.fit(scale(X_private), y_private)

# The student asks about twenty public records, and learns from the answers and the whole pool.
student = StudentClassifier(hospitals, labels=20, estimator=SVC()).fit(scale(X_public))

right = (student.private_labels_ == y_public[student.answered_]).mean()
print(f"private labels right: {right:.0%} of {len(student.answered_)}")
print(f"student right: {student.score(scale(X_test), y_test):.0%} of {len(X_test)} it never saw")
print(f"spent, once and for all: ε = {hospitals.privacy_spent_['epsilon']:.2f}")
