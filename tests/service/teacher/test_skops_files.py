"""A teacher with a scikit-learn model does not carry torch, and skops works all the same."""

import subprocess
import sys

import pytest
from tests.left_out import need_module

SCRIPT = """
import sys
from dppp.service.teacher.models.skops_files import import_skops
skops = import_skops()
assert "torch" not in sys.modules, "torch was imported"
assert "sklearn.externals.array_api_compat.torch" not in sys.modules, "a trace is left"
from sklearn.svm import SVC
model = SVC(gamma=0.25).fit([[0.0], [1.0]], [0, 1])
assert skops.loads(skops.dumps(model), trusted=[]).gamma == 0.25
import torch
import sklearn.externals.array_api_compat.torch as bridge
assert bridge.Tensor is torch.Tensor, "torch is of no use any more"
assert import_skops() is skops
"""


PLAIN = """
import sys
from dppp.service.teacher.models.skops_files import import_skops
skops = import_skops(tables=False)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
model = make_pipeline(StandardScaler(), LogisticRegression()).fit([[0.0], [1.0]], ["no", "yes"])
again = skops.loads(skops.dumps(model), trusted=[])
assert list(again.predict([[0.0], [1.0]])) == ["no", "yes"]
from sklearn.impute import SimpleImputer
SimpleImputer().fit([[0.0]]).transform([[1.0]])  # looks for pandas each time
assert "pandas" not in sys.modules, "pandas was imported"
"""

LIGHT = """
import sys
import dppp.service.teacher.process
heavy = {"dp_accounting", "scipy.stats", "scipy.signal", "scipy.optimize", "pandas", "sklearn"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
"""


@pytest.mark.parametrize("script", [PLAIN, LIGHT], ids=["skops", "the process"])
def test_a_teacher_of_plain_numbers_carries_neither_pandas_nor_the_accounting(script: str) -> None:
    done = subprocess.run(  # noqa: S603 - the scripts above
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr


def test_skops_comes_without_torch_and_torch_is_there_afterwards() -> None:
    need_module("torch", extra="torch")
    done = subprocess.run(  # noqa: S603 - the script above
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
