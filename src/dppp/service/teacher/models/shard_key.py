"""The key that deals a teacher's records to its votes; made once, and kept on its own machine.

The same key deals the same records to the same shards again (learning/shards.py). Used by
`dppp train` and by a teacher whose model is a language model.
"""

from pathlib import Path

from dppp.errors import InputError
from dppp.randomness import system_randomness
from dppp.service.stores.new_files import NewFile, read_file, write_new_files

SHARD_KEY = "shards.key"
_KEY_BYTES = 32


def read_or_make_shard_key(path: Path) -> bytes:
    """The key in this file, or a new one, which is there from now on."""
    if not path.exists():
        key = system_randomness(_KEY_BYTES)
        write_new_files(path.parent, [NewFile(name=path.name, data=key)])
        return key
    key = read_file(path)
    if len(key) != _KEY_BYTES:
        raise InputError(
            f"{path} is not a shard key: it has {len(key)} bytes, not {_KEY_BYTES}",
            hint="give the file that an earlier `dppp train` made, or the name of a new one",
        )
    return key
