"""What a whole embedded federation costs: every role, hardened, real bytes, by step."""

import resource
import time
from collections.abc import Sequence

import numpy as np

from dppp.federation import Federation, Reply, create_federation, in_process
from dppp.paillier.dealer import deal
from dppp.privacy.calibration import calibrate
from dppp.protocol.events import Send
from dppp.protocol.messages import BatchRequest
from dppp.protocol.transcript import verify_transcript
from dppp.protocol.wire import kind_of


def measure_federation(
    *, teachers: int, queries: int, classes: int, modulus_bits: int, s: int
) -> dict[str, object]:
    """Processor seconds of one batch, all parties in this process, and the part of each step."""
    certificate = calibrate(
        "skellam", epsilon=8, delta=1e-5, teachers=teachers, queries=queries, classes=classes
    )
    key = deal(
        teachers=teachers,
        threshold=certificate.trust.threshold,
        modulus_bits=modulus_bits,
        s=s,
        insecure_testing=True,
    )
    parties = create_federation(
        name="benchmark",
        class_names=[f"class {number}" for number in range(classes)],
        features=["input"],
        certificate=certificate,
        models=[lambda inputs: [int(row[0]) % classes for row in inputs]] * teachers,
        key=key,
    )
    here = in_process(parties.teachers)
    spent = {"ballots": 0.0, "list checks and shares": 0.0}

    def deliver(sends: Sequence[Send], now: int) -> list[Reply]:
        is_voting = bool(sends) and kind_of(sends[0].data) == BatchRequest.KIND
        started = time.process_time()
        replies = here(sends, now)
        spent["ballots" if is_voting else "list checks and shares"] += time.process_time() - started
        return replies

    federation = Federation(aggregator=parties.aggregator, deliver=deliver)
    started = time.process_time()
    outcome = federation.ask(np.arange(queries, dtype=float).reshape(-1, 1))
    total = time.process_time() - started
    started = time.process_time()
    assert outcome.transcript is not None, "every input is new"
    transcript = outcome.transcript.to_bytes()
    verify_transcript(transcript, insecure_testing=True)
    verified = time.process_time() - started
    steps = {**spent, "aggregator": total - sum(spent.values())}
    return {
        "federation_teachers": teachers,
        "federation_queries": queries,
        "federation_classes": classes,
        "federation_cpu_seconds": total,
        "federation_cpu_ms_per_label": 1000 * total / queries,
        "federation_steps": {name: seconds / total for name, seconds in steps.items()},
        "federation_verify_cpu_seconds": verified,
        "federation_transcript_bytes": len(transcript),
        "federation_peak_megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
