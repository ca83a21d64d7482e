"""Who may ask at the gateway: names, hashes of tokens, and how many queries each may spend.

Every querier has an allowance. A token without one could be used, by whoever finds it, to spend
all that is left of the task.
"""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from dppp.errors import TranscriptsNotAllowed
from dppp.whole_numbers import require_whole

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Querier:
    """One querier. Its token is kept by the querier alone; here is its hash.

    `transcripts` is an auditor's right to full transcripts, of its own batches. What it asks may go
    into one batch with what others ask, where the gateway gathers and `share` does not forbid it.
    """

    name: str
    token_sha256: str
    queries: int
    transcripts: bool = False
    share: bool = True

    def __post_init__(self) -> None:
        require_whole(f"what {self.name} may spend", self.queries)

    def require_transcripts(self) -> None:
        """Full transcripts are for auditors: a key that is lost later would open the ballots."""
        if not self.transcripts:
            raise TranscriptsNotAllowed(
                "a full transcript holds all ballots and is for auditors, and your token is not "
                "an auditor's; a querier gets receipts",
                hint=(
                    "an auditor asks the aggregator's operator for transcripts = true in its entry"
                ),
            )


def make_token() -> tuple[str, str]:
    """A new token and its hash."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return token, hash_token(token)


def hash_token(token: str) -> str:
    """What the gateway keeps of a token; a random token needs no salt."""
    return hashlib.sha256(token.encode()).hexdigest()


def find_querier(queriers: Sequence[Querier], token: str) -> Querier | None:
    """Whose token this is; looks at all, so that time tells nothing."""
    found = None
    digest = hash_token(token)
    for querier in queriers:
        if hmac.compare_digest(digest, querier.token_sha256):
            found = querier
    return found
