"""A teacher's process, as far as the secrets of its epochs are concerned; the tests race it.

Run as `python epoch_secrets_process.py FILE NAME COUNT`: says the secret that counts of each of the
epochs 0 to COUNT - 1, as soon as it is stored, and offers one of its own for each.
"""

import sys
from pathlib import Path

from dppp.service.stores.epoch_secrets import open_epoch_secrets

TASK = b"\7" * 32


def offered(name: str, epoch: int) -> bytes:
    """A secret that says who made it."""
    return f"{name} {epoch} ".encode().ljust(40, b".")


def main(path: str, name: str, count: str) -> None:
    with open_epoch_secrets(Path(path)) as secrets:
        for epoch in range(int(count)):
            kept = secrets.put_once(TASK, epoch, offered(name, epoch))
            sys.stdout.write(f"{epoch} {kept.hex()}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
