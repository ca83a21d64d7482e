"""An aggregator checks a receipt of its own for the page: a hint, and not a proof to anybody."""

from dppp.errors import TranscriptError
from dppp.protocol.receipt import RECEIPT_CHECKS, verify_receipt
from dppp.service.gateway.schemas import Verification


def check_receipt(receipt: bytes, *, insecure_testing: bool = False) -> Verification:
    """Every check of `dppp verify`, and which of them hold."""
    command = "dppp verify release.receipt --task THE-ID-THAT-A-TEACHER-TOLD-YOU"
    try:
        found = verify_receipt(receipt, insecure_testing=insecure_testing)
    except TranscriptError as error:
        holding = list(RECEIPT_CHECKS[: RECEIPT_CHECKS.index(error.check)])
        return Verification(
            is_verified=False,
            checks=holding,
            ballots=0,
            endorsements=0,
            reason=str(error),
            command=command,
        )
    return Verification(
        is_verified=True,
        checks=list(found.checks),
        ballots=found.ballots,
        endorsements=len(found.endorsers),
        reason=None,
        command=command,
    )
