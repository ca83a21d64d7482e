"""An aggregator checks a transcript of its own for the page: a hint, no proof to anybody else."""

from dppp.errors import TranscriptError
from dppp.protocol.transcript import CHECKS, verify_transcript
from dppp.service.gateway_models import Verification


def check_transcript(transcript: bytes, *, insecure_testing: bool = False) -> Verification:
    """Every check of `dppp verify`, and which of them hold."""
    command = "dppp verify release.transcript --task THE-ID-THAT-A-TEACHER-TOLD-YOU"
    try:
        found = verify_transcript(transcript, insecure_testing=insecure_testing)
    except TranscriptError as error:
        holding = list(CHECKS[: CHECKS.index(error.check)])
        return Verification(
            is_verified=False, checks=holding, ballots=0, reason=str(error), command=command
        )
    return Verification(
        is_verified=True,
        checks=list(found.checks),
        ballots=found.ballots,
        reason=None,
        command=command,
    )
