"""Twenty hospitals, one promise, private labels: the real protocol underneath."""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from dppp import PrivateVotingClassifier

X_train, X_test, y_train, y_test = train_test_split(*load_breast_cancer(return_X_y=True))
model = make_pipeline(StandardScaler(), SVC())
private = PrivateVotingClassifier(model, n_teachers=20, epsilon=8, delta=1e-5, queries=20)
private.fit(X_train, y_train)
print("accuracy:", private.score(X_test[:20], y_test[:20]), "cost:", private.privacy_spent_)
