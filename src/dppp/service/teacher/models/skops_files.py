"""skops, without torch and pandas: it looks through all of scikit-learn for types to trust.

On its way it would import scikit-learn's bridge to torch, and so torch itself wherever that is
installed: 180 MB and three seconds in each teacher, for a model that does not use it. scikit-learn
also imports pandas wherever that is installed, 60 MB more, and uses it for DataFrames only. A
teacher whose rows are plain numbers never meets one, if its models are of scikit-learn's own types.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

from dppp.errors import MissingExtraError

_BRIDGE = "sklearn.externals.array_api_compat.torch"
_TABLES = "pandas"


class _WithoutTables(MetaPathFinder):
    """Finds no pandas; as if nobody had installed it."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> None:
        if fullname == _TABLES:
            raise ModuleNotFoundError(f"{_TABLES} is held back: rows here are plain numbers")


_WITHOUT_TABLES = _WithoutTables()


def import_skops(*, tables: bool = True) -> ModuleType:
    """The module skops.io; without `tables` this process goes on as if there were no pandas."""
    if not tables and _TABLES not in sys.modules and _WITHOUT_TABLES not in sys.meta_path:
        sys.meta_path.insert(0, _WITHOUT_TABLES)
    is_held_back = _BRIDGE not in sys.modules
    if is_held_back:
        sys.modules[_BRIDGE] = None  # type: ignore[assignment]  # an ImportError, passed over
    try:
        import skops.io  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("a skops model needs skops", extra="service") from error
    finally:
        if is_held_back:
            del sys.modules[_BRIDGE]
    return skops.io  # type: ignore[no-any-return]
