"""Distributed privacy-preserving prediction.

The names below are the Python interface, with the exceptions that it raises; each is loaded when
first used, so that `import dppp` is instant.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dppp.errors import BatchAborted as BatchAborted
    from dppp.errors import BudgetExceeded as BudgetExceeded
    from dppp.errors import BudgetNotCopied as BudgetNotCopied
    from dppp.errors import DpppError as DpppError
    from dppp.errors import InputError as InputError
    from dppp.errors import KeyMaterialError as KeyMaterialError
    from dppp.errors import LedgerError as LedgerError
    from dppp.errors import MissingExtraError as MissingExtraError
    from dppp.errors import NotWorthItWarning as NotWorthItWarning
    from dppp.errors import PartlyScoredWarning as PartlyScoredWarning
    from dppp.errors import PeerFault as PeerFault
    from dppp.errors import QueriesExhausted as QueriesExhausted
    from dppp.errors import RecordsUsedAgainWarning as RecordsUsedAgainWarning
    from dppp.errors import Refusal as Refusal
    from dppp.errors import TaskError as TaskError
    from dppp.errors import TranscriptError as TranscriptError
    from dppp.errors import Unavailable as Unavailable
    from dppp.errors import UncertifiedError as UncertifiedError
    from dppp.errors import WeakModulusWarning as WeakModulusWarning
    from dppp.errors import WireError as WireError
    from dppp.federation import Federation as Federation
    from dppp.federation import create_federation as create_federation
    from dppp.federation import in_process as in_process
    from dppp.learning.estimator import PrivateVotingClassifier as PrivateVotingClassifier
    from dppp.learning.regressor import PrivateVotingRegressor as PrivateVotingRegressor
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
    "BatchAborted": "dppp.errors",
    "Binomial": "dppp.privacy.noise",
    "BudgetExceeded": "dppp.errors",
    "BudgetNotCopied": "dppp.errors",
    "Certificate": "dppp.privacy.certificate",
    "DiscreteGaussian": "dppp.privacy.noise",
    "DpppError": "dppp.errors",
    "Federation": "dppp.federation",
    "InputError": "dppp.errors",
    "KeyMaterialError": "dppp.errors",
    "LedgerError": "dppp.errors",
    "MissingExtraError": "dppp.errors",
    "PeerFault": "dppp.errors",
    "NotWorthItWarning": "dppp.errors",
    "PartlyScoredWarning": "dppp.errors",
    "Polya": "dppp.privacy.noise",
    "PrivateVotingClassifier": "dppp.learning.estimator",
    "PrivateVotingRegressor": "dppp.learning.regressor",
    "QueriesExhausted": "dppp.errors",
    "RecordsUsedAgainWarning": "dppp.errors",
    "Refusal": "dppp.errors",
    "Skellam": "dppp.privacy.noise",
    "Spending": "dppp.privacy.accounting",
    "StudentClassifier": "dppp.learning.student",
    "Task": "dppp.protocol.task",
    "TaskError": "dppp.errors",
    "Teacher": "dppp.protocol.teacher",
    "TranscriptError": "dppp.errors",
    "Trust": "dppp.privacy.trust",
    "Unavailable": "dppp.errors",
    "UncertifiedError": "dppp.errors",
    "WeakModulusWarning": "dppp.errors",
    "WireError": "dppp.errors",
    "account": "dppp.privacy.accounting",
    "calibrate": "dppp.privacy.calibration",
    "create_federation": "dppp.federation",
    "delta_at": "dppp.privacy.divergence",
    "in_process": "dppp.federation",
    "verify_transcript": "dppp.protocol.transcript",
}

__all__ = [*_HOMES, "__version__"]  # noqa: PLE0604 - names of the mapping above


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dppp' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
