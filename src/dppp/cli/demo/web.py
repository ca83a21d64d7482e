"""`dppp demo --web`: the page over a federation in this process, until Ctrl-C."""

import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from dppp.learning.csv_records import Records
    from dppp.service.gateway.embedded import Embedded

HOST = "127.0.0.1"
QUERIER = "you"
EXAMPLES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Show:
    """What is shown: which records, how many teachers, and the promise."""

    name: str
    teachers: int
    epsilon: float
    delta: float
    queries: int


SHOWS = {
    "breast-cancer": Show(name="Breast Cancer", teachers=20, epsilon=8.0, delta=1e-5, queries=50),
    "digits": Show(name="Digits", teachers=25, epsilon=8.0, delta=1e-5, queries=20),
}
"""Numbers chosen by the planner, see docs/decisions.md."""


def serve_demo(
    *, data: str = "breast-cancer", port: int = 0, is_browser_wanted: bool = True
) -> None:
    """Found a federation here, serve its gateway and page, and run until Ctrl-C."""
    if data not in SHOWS:
        raise InputError(f"there is no demo with {data!r}", hint=f"choose {' or '.join(SHOWS)}")
    require_service()
    from dppp.service.gateway.graceful_server import GracefulServer  # noqa: PLC0415
    from dppp.service.gateway.queriers import make_token  # noqa: PLC0415
    from dppp.service.process.listening import listen  # noqa: PLC0415

    console = Console()
    token, digest = make_token()
    with console.status("training models and making keys"):
        embedded = make_demo(SHOWS[data], data, token_sha256=digest)
    with listen(f"{HOST}:{port}") as listening:
        address = f"http://{HOST}:{listening.getsockname()[1]}/#token={token}"
        console.print(f"The page is at\n\n  {address}\n\nStop it with Ctrl-C.", soft_wrap=True)
        if is_browser_wanted:
            webbrowser.open(address)
        GracefulServer(embedded.app, embedded.runner.hub).run_until_stopped(listening)


def make_demo(show: Show, data: str, *, token_sha256: str) -> "Embedded":
    """The gateway of a federation whose teachers all live in this process."""
    from dppp.federation import create_federation  # noqa: PLC0415
    from dppp.learning.models import as_predict  # noqa: PLC0415
    from dppp.privacy.calibration import calibrate  # noqa: PLC0415
    from dppp.protocol.batch_store import MemoryBatchStore  # noqa: PLC0415
    from dppp.service.gateway.embedded import embed_gateway  # noqa: PLC0415
    from dppp.service.gateway.queriers import Querier  # noqa: PLC0415

    records, models, examples = _learn(show, data)
    classes = sorted(set(records.labels.tolist()))
    parties = create_federation(
        name=show.name,
        class_names=classes,
        features=records.features,
        certificate=calibrate(
            "auto",
            epsilon=show.epsilon,
            delta=show.delta,
            teachers=show.teachers,
            queries=show.queries,
            classes=len(classes),
        ),
        models=[as_predict(model, classes) for model in models],
    )
    return embed_gateway(
        parties,
        store=MemoryBatchStore(),
        queriers=[
            Querier(name=QUERIER, token_sha256=token_sha256, queries=show.queries, transcripts=True)
        ],
        page=True,
        examples=examples,
    )


def _learn(show: Show, data: str) -> "tuple[Records, list[Any], list[list[float]]]":
    """Records, a model per teacher, and rows that no teacher has seen."""
    try:
        from dppp.learning.examples import local_models  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("this needs scikit-learn", extra="learning,service") from error
    is_image = data == "digits"
    records = local_models.digits() if is_image else local_models.breast_cancer()
    make_model: Callable[[], Any] = (
        local_models.image_model if is_image else local_models.table_model
    )
    models, held_out = local_models.split_and_train(records, show.teachers, make_model=make_model)
    return records, models, records.rows[held_out[:EXAMPLES]].tolist()
