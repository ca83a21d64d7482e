"""Every reader under atheris: coverage decides which damage is worth more damage.

    python -m tests.fuzz.coverage_guided FOLDER

Runs for DPPP_FUZZ_SECONDS (120 unless told) over a corpus made of good bytes, and keeps what it
finds worth keeping in FOLDER. The first byte of an input chooses the reader. Anything but a value
or a declared refusal ends the run with a traceback and the input in FOLDER/crash-…; so do ten
seconds for one input, or two gigabytes. Needs the extra `fuzz`.
"""

import os
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dppp", "msgpack"]):
    from tests.fuzz.masked_samples import make_masked_samples
    from tests.fuzz.samples import Decoder, make_samples

    from dppp.errors import DpppError

SLOWEST_INPUT_SECONDS = 10
MOST_MEGABYTES = 2048


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    decoders = (*make_samples().decoders(), *make_masked_samples().decoders())
    assert len(decoders) <= 256, "one byte chooses the reader"
    for place, decoder in enumerate(decoders):
        (folder / f"good {place}").write_bytes(bytes([place]) + decoder.good)
    seconds = os.environ.get("DPPP_FUZZ_SECONDS", "120")
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={SLOWEST_INPUT_SECONDS}",
        f"-rss_limit_mb={MOST_MEGABYTES}",
        f"-artifact_prefix={folder}/",
        "-max_len=20000",
        "-print_final_stats=1",
        str(folder),
    ]
    atheris.Setup([sys.argv[0], *options], lambda data: _try(decoders, data))
    atheris.Fuzz()


def _try(decoders: tuple[Decoder, ...], data: bytes) -> None:
    if not data:
        return
    decoder = decoders[data[0] % len(decoders)]
    try:
        found = decoder.read(data[1:])
    except DpppError:
        return
    if decoder.again is not None:
        assert decoder.again(found) == data[1:], f"two encodings of one {decoder.name}"


if __name__ == "__main__":
    main()
