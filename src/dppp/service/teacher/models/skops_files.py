"""skops, without torch: skops looks through all of scikit-learn for types that it may trust.

On its way it would import scikit-learn's bridge to torch, and so torch itself wherever that is
installed: 180 MB and three seconds in each teacher, for a model that does not use it.
"""

import sys
from types import ModuleType

from dppp.errors import MissingExtraError

_BRIDGE = "sklearn.externals.array_api_compat.torch"


def import_skops() -> ModuleType:
    """The module skops.io."""
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
