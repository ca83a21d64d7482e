"""`dppp renew`: new certificates before the old ones end, while the federation goes on.

In the order in which they are typed. The heavy imports are inside the commands.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dppp.cli.optional_packages import require_service
from dppp.cli.options import JsonOption
from dppp.cli.output_files import require_folder_above
from dppp.cli.terminal import emit, say

app = typer.Typer(
    help="Renew TLS certificates before they end; the federation hash stays the same."
)

HomeArgument = Annotated[
    Path, typer.Argument(help="The home folder that `dppp join` made.", show_default=False)
]


@app.command()
def request(home: HomeArgument, *, as_json: JsonOption = False) -> None:
    """Every organisation: make a new TLS key, kept in the home, and a request to certify it."""
    require_service()
    from dppp.service.ceremony.home import RENEWAL, Home  # noqa: PLC0415
    from dppp.service.ceremony.renewal import request_renewal  # noqa: PLC0415

    own = Home(folder=home)
    ends = own.tls_certificate().not_valid_after_utc
    made = request_renewal(own)
    result = {
        "home": str(home),
        "name": made.name,
        "request_file": str(home / RENEWAL),
        "fingerprint": made.fingerprint,
        "certificate_valid_until": ends.isoformat(),
    }

    def show(console: Console) -> None:
        say(
            console,
            f"request      {home / RENEWAL}   to the coordinator",
            f"fingerprint  {made.spoken_fingerprint}",
            f"certificate  in use until {ends:%Y-%m-%d}",
            "",
            "The coordinator sees the same fingerprint: compare it by telephone.",
        )

    emit(result, as_json=as_json, show=show)


@app.command()
def sign(
    folder: Annotated[Path, typer.Argument(help="The coordinator's folder.", show_default=False)],
    requests: Annotated[
        list[Path], typer.Argument(help="The renewal requests.", show_default=False)
    ],
    *,
    out: Annotated[Path, typer.Option(help="A folder for the certificates.")],
    as_json: JsonOption = False,
) -> None:
    """Coordinator: check renewal requests and issue their certificates."""
    require_service()
    require_folder_above(out)
    from dppp.service.ceremony.coordinator import read_request  # noqa: PLC0415
    from dppp.service.ceremony.renewal import sign_renewals  # noqa: PLC0415

    renewed = sign_renewals(folder, [read_request(path) for path in requests], out)
    rows = [
        {
            "name": each.request.name,
            "role": each.request.role.value,
            "fingerprint": each.request.fingerprint,
            "certificate_file": str(out / each.file),
            "certificate_valid_until": each.valid_until.isoformat(),
        }
        for each in renewed
    ]

    def show(console: Console) -> None:
        lines = [
            f"{each.request.spoken_fingerprint}  {out / each.file}   to {each.request.name}, valid "
            f"until {each.valid_until:%Y-%m-%d}"
            for each in renewed
        ]
        say(console, *lines, "", "Compare each fingerprint by telephone before you send it.")

    emit({"renewed": rows}, as_json=as_json, show=show)


@app.command()
def install(
    home: HomeArgument,
    certificate: Annotated[
        Path, typer.Argument(help="The certificate from the coordinator.", show_default=False)
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """Every organisation: replace the old key and certificate by the new ones."""
    require_service()
    from dppp.service.ceremony.home import Home  # noqa: PLC0415
    from dppp.service.ceremony.renewal import install_renewal  # noqa: PLC0415
    from dppp.service.stores.new_files import read_file  # noqa: PLC0415

    text = read_file(certificate).decode("ascii", "replace")
    ends = install_renewal(Home(folder=home), text)

    def show(console: Console) -> None:
        say(
            console,
            f"certificate  valid until {ends:%Y-%m-%d}",
            "",
            "Restart the teacher or aggregator; a nats-server takes it by SIGHUP.",
        )

    result = {"home": str(home), "certificate_valid_until": ends.isoformat()}
    emit(result, as_json=as_json, show=show)
