"""The packages a user could pick today, on the same work, in an environment of their own.

They are installed into a temporary virtual environment, measured there by `peer_script`, and
removed. Where they cannot be had (no network, no such release) the object says so instead.
"""

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from gmpy2 import mpz

from dppp.benchmarks.workload import Workload

# Package and release, and what to know when reading its figure.
PEERS = {
    "damgard-jurik==0.0.3": "threshold; its public key contains the secret p′q′",
    "phe==1.5.0": "no threshold: whoever holds the key reads every ballot",
    "tenseal==0.3.18": "BFV; no threshold: whoever holds the key reads every ballot",
}
_ONE_ENTRY = "1 class of 1 label with every party's work, times the classes"
_WHOLE_BATCH = "the whole batch; one teacher's encryption counted for each"
_TIMEOUT_SECONDS = 900


def measure_peers(
    workload: Workload, primes: tuple[mpz, mpz], ours_ms: float
) -> dict[str, dict[str, object]]:
    """Processor milliseconds per label of each peer, and how many times ours that is."""
    return {peer: _measure(peer, workload, primes, ours_ms) for peer in PEERS}


def _measure(
    peer: str, workload: Workload, primes: tuple[mpz, mpz], ours_ms: float
) -> dict[str, object]:
    request = {
        "peer": peer.partition("==")[0],
        "teachers": workload.teachers,
        "threshold": workload.threshold,
        "modulus_bits": workload.modulus_bits,
        "labels": workload.labels,
        "classes": workload.classes,
        "primes": [str(prime) for prime in primes],
        "entries": workload.draw_entries(1)[:, 0].tolist(),
    }
    try:
        answer = _run_in_own_environment(peer, json.dumps(request))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return {"skipped": f"could not be installed or run here ({type(error).__name__})"}
    milliseconds = 1e3 * answer["seconds_per_label"]
    return {
        "cpu_ms_per_label": milliseconds,
        "ratio": milliseconds / ours_ms,
        "bytes_sent_per_label": answer["bytes_sent_per_label"],
        "measured": _WHOLE_BATCH if peer.startswith("tenseal") else _ONE_ENTRY,
        "note": PEERS[peer],
    }


def _run_in_own_environment(peer: str, request: str) -> dict[str, float]:
    script = Path(__file__).with_name("peer_script.py")
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / ("Scripts" if sys.platform == "win32" else "bin") / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", peer, "gmpy2"]
        subprocess.run(install, check=True, capture_output=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603
        done = subprocess.run(  # noqa: S603 - our own script
            [python, script],
            input=request,
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_SECONDS,
        )
    answer = json.loads(done.stdout)
    if not answer.pop("sum_is_right"):
        raise ValueError("the peer's sum is wrong")
    return {name: float(value) for name, value in answer.items()}
