"""Optional packages: loaded when a command needs them, with a word on how to get them."""

import importlib.util
from typing import Any

from dppp.errors import MissingExtraError


def load_pyplot() -> Any:
    """Matplotlib's pyplot, drawing to files only."""
    try:
        import matplotlib as mpl  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("drawing needs matplotlib", extra="experiments") from error
    mpl.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    return pyplot


def require_service() -> None:
    """Go on if what talks to other organisations is installed."""
    for module in ("nkeys", "pydantic"):
        if importlib.util.find_spec(module) is None:
            raise MissingExtraError(f"this needs {module}", extra="service")


def require_scikit_learn() -> None:
    """Say what to install before anything that learns is imported."""
    if importlib.util.find_spec("sklearn") is None:
        raise MissingExtraError("this needs scikit-learn", extra="learning")
