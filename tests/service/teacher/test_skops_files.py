"""A teacher with a scikit-learn model does not carry torch, and skops works all the same."""

import subprocess
import sys

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


def test_skops_comes_without_torch_and_torch_is_there_afterwards() -> None:
    need_module("torch", extra="torch")
    done = subprocess.run(  # noqa: S603 - the script above
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
