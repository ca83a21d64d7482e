"""Who may ask at the gateway: names, hashes of tokens, and how many queries each may spend."""

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Querier:
    """One querier. Its token is kept by the querier alone; here is its hash."""

    name: str
    token_sha256: str
    queries: int | None


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
