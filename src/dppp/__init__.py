"""Distributed privacy-preserving prediction.

The names below are the Python interface; each is loaded when first used, so that `import dppp` is
instant.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dppp.federation import Federation as Federation
    from dppp.federation import create_federation as create_federation
    from dppp.federation import in_process as in_process
    from dppp.learning.estimator import PrivateVotingClassifier as PrivateVotingClassifier
    from dppp.learning.student import StudentClassifier as StudentClassifier
    from dppp.privacy.accounting import Spending as Spending
    from dppp.privacy.accounting import account as account
    from dppp.privacy.calibration import calibrate as calibrate
    from dppp.privacy.certificate import Certificate as Certificate
    from dppp.privacy.divergence import delta_at as delta_at
    from dppp.privacy.noise import Binomial as Binomial
    from dppp.privacy.noise import DiscreteGaussian as DiscreteGaussian
    from dppp.privacy.noise import Polya as Polya
    from dppp.privacy.noise import Skellam as Skellam
    from dppp.privacy.trust import Trust as Trust
    from dppp.protocol.aggregator import Aggregator as Aggregator
    from dppp.protocol.task import Task as Task
    from dppp.protocol.teacher import Teacher as Teacher
    from dppp.protocol.transcript import verify_transcript as verify_transcript

__version__ = "0.2.0"

_HOMES = {
    "Aggregator": "dppp.protocol.aggregator",
    "Binomial": "dppp.privacy.noise",
    "Certificate": "dppp.privacy.certificate",
    "DiscreteGaussian": "dppp.privacy.noise",
    "Federation": "dppp.federation",
    "Polya": "dppp.privacy.noise",
    "PrivateVotingClassifier": "dppp.learning.estimator",
    "Skellam": "dppp.privacy.noise",
    "Spending": "dppp.privacy.accounting",
    "StudentClassifier": "dppp.learning.student",
    "Task": "dppp.protocol.task",
    "Teacher": "dppp.protocol.teacher",
    "Trust": "dppp.privacy.trust",
    "account": "dppp.privacy.accounting",
    "calibrate": "dppp.privacy.calibration",
    "delta_at": "dppp.privacy.divergence",
    "in_process": "dppp.federation",
    "create_federation": "dppp.federation",
    "verify_transcript": "dppp.protocol.transcript",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - names of the mapping above


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dppp' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
