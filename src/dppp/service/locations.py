"""Where a store is: a file, or a url of PostgreSQL, which is a secret."""

from pathlib import Path

from dppp.errors import InputError, MissingExtraError

Location = Path | str
"""A file, or a text like postgresql://name:password@host/database?schema=name."""

_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")


def require_url(location: str) -> None:
    """Refuse what is no url of PostgreSQL, or for which the packages are missing."""
    if location.partition("://")[0] not in _SCHEMES:
        raise InputError(  # a mistyped url holds a password too, so it is not repeated
            "a store is given as a Path, or as a text that begins with postgresql://"
        )
    try:
        import psycopg  # noqa: F401, PLC0415
        import sqlalchemy  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingExtraError(
            "a store in PostgreSQL needs SQLAlchemy and psycopg; install them with: "
            "pip install 'dppp[service]'"
        ) from error
