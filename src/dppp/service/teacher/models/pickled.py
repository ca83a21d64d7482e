"""A pickled model, for an operator who insists: loading one runs whatever its maker put in it.

The only file that may import pickle (pyproject.toml holds that). Models of this kind are refused
without being opened, unless the command line says --allow-pickle-which-can-run-any-code.
"""

import pickle
from pathlib import Path
from typing import Any

from dppp.errors import Refusal
from dppp.service.teacher.models.loading import reading_model

FLAG = "--allow-pickle-which-can-run-any-code"


def load_pickle(path: Path, *, allow_pickle: bool) -> Any:
    """The object in a pickle file."""
    if allow_pickle is not True:
        raise Refusal(
            f"{path} was not opened: whoever made or changed a pickle can run any code here, and "
            "read the data, the key share and the ledger",
            hint=(
                f"save the model by skops or ONNX instead, or start with {FLAG} if you made this "
                "file yourself"
            ),
        )
    with reading_model(path, "a pickled model"), path.open("rb") as file:
        return pickle.load(file)  # noqa: S301 - the operator was told
