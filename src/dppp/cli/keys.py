"""`dppp keys`: deal a key, look at a key or a sealed share.

This is the dealer's process: it makes the key, writes every share encrypted with mode 0600, and
ends. Nothing is ever overwritten. Passphrases come from a file or the environment, never from a
flag, which other users of the machine could read.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dppp.cli.dealing import deal_to_federation, dealing, tell
from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError
from dppp.paillier.arithmetic.parallel import map_over_cores
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, DealtKey, check_terms, deal
from dppp.paillier.keys import Decryption, PublicKey
from dppp.paillier.sealing import check_secret, read_header, seal_share, unseal_share
from dppp.service.ceremony.share_envelope import read_envelope_header
from dppp.service.stores.new_files import (
    PUBLIC,
    NewFile,
    read_file,
    refuse_to_overwrite,
    write_new_files,
)

app = typer.Typer(help="Deal a key, or look at one.")

PASSPHRASE_VARIABLE = "DPPP_PASSPHRASE"  # noqa: S105 - its name, not its value
PUBLIC_NAME = "public.key"

PassphraseFile = Annotated[
    Path | None,
    typer.Option(
        help=(
            "A passphrase in a file: one line for all shares, or a line for each teacher. "
            f"Without it, the environment variable {PASSPHRASE_VARIABLE} is used."
        )
    ),
]

KeyFile = Annotated[
    Path | None,
    typer.Option(help="A file whose whole contents take the place of a passphrase."),
]


@app.command("deal")
def deal_key(
    *,
    out: Annotated[Path, typer.Option(help="A folder for the files; made if missing.")],
    federation: Annotated[
        Path | None,
        typer.Option(help="A coordinator's folder: deal to those who joined, by its terms."),
    ] = None,
    teachers: Annotated[int | None, typer.Option(help="How many teachers get a share.")] = None,
    threshold: Annotated[
        int | None, typer.Option(help="How many of them decrypt together.")
    ] = None,
    modulus_bits: Annotated[
        int | None,
        typer.Option(help="2048 (default) or 3072."),
    ] = None,
    s: Annotated[
        int | None, typer.Option(help="Damgard-Jurik's s; 1 (default) is Paillier.")
    ] = None,
    decryption: Annotated[
        Decryption | None, typer.Option(help="root (default), or paper for comparison.")
    ] = None,
    passphrase_file: PassphraseFile = None,
    key_file: KeyFile = None,
    as_json: JsonOption = False,
) -> None:
    """Deal a new key: public.key or federation.json, and a sealed share for each teacher."""
    if federation is not None:
        own = (teachers, threshold, modulus_bits, s, decryption, passphrase_file, key_file)
        if any(each is not None for each in own):
            raise InputError(
                "with --federation the terms and the keys to seal to are in the folder",
                hint="give only --out besides",
            )
        return deal_to_federation(federation, out, as_json=as_json)
    if teachers is None or threshold is None:
        raise InputError(
            "nobody to deal to", hint="give --federation FOLDER, or --teachers and --threshold"
        )
    return _deal_to_passphrases(
        out=out,
        teachers=teachers,
        threshold=threshold,
        modulus_bits=DEFAULT_MODULUS_BITS if modulus_bits is None else modulus_bits,
        s=1 if s is None else s,
        decryption=decryption or Decryption.ROOT,
        secrets=_read_secrets(passphrase_file, key_file),
        as_json=as_json,
    )


def _deal_to_passphrases(
    *,
    out: Path,
    teachers: int,
    threshold: int,
    modulus_bits: int,
    s: int,
    decryption: Decryption,
    secrets: list[bytes],
    as_json: bool,
) -> None:
    check_terms(teachers=teachers, threshold=threshold, modulus_bits=modulus_bits, s=s)
    secrets = _secrets_for_all(secrets, teachers)
    names = [_share_name(index, teachers) for index in range(1, teachers + 1)]
    refuse_to_overwrite(out, [PUBLIC_NAME, *names])
    with dealing() as notes:
        dealt = deal(
            teachers=teachers,
            threshold=threshold,
            modulus_bits=modulus_bits,
            s=s,
            decryption=decryption,
        )
    if len(set(secrets)) < teachers:
        notes.append("shares have the same passphrase: any teacher who gets another's can open it")
    _write_all(out, dealt, names, secrets)
    result = _describe(dealt.public) | {
        "public_key_file": PUBLIC_NAME,
        "share_files": names,
        "warnings": notes,
    }
    tell(() if as_json else notes)
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


@app.command("inspect")
def inspect_key(
    file: Annotated[Path, typer.Argument(help="A public key or a sealed share.")],
    passphrase_file: PassphraseFile = None,
    key_file: KeyFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a key file is; with a passphrase, check that a sealed share opens."""
    data = read_file(file)
    if data.startswith(b"dppp sealed share"):
        result = _inspect_share(data, passphrase_file, key_file)
    elif data.startswith(b"dppp share envelope"):
        task_id, index = read_envelope_header(data)
        result = {"kind": "share of a federation", "task_id": task_id.hex(), "index": index}
    elif data.startswith(b"dppp public key"):
        result = {"kind": "public key"} | _describe(PublicKey.from_bytes(data))
    else:
        raise InputError(
            f"{file.name} is neither a public key nor a sealed share",
            hint="give a file that 'dppp keys deal' wrote",
        )
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


def _inspect_share(
    data: bytes, passphrase_file: Path | None, key_file: Path | None
) -> dict[str, object]:
    header = read_header(data)
    secrets = _read_secrets(passphrase_file, key_file)
    if secrets:
        unseal_share(data, _secret_of(secrets, header.index))
    return {
        "kind": "sealed share",
        "key_id": header.key_id.hex(),
        "index": header.index,
        "scrypt_cost_log2": header.cost_log2,
        "opened": bool(secrets),
    }


def _describe(public: PublicKey) -> dict[str, object]:
    return {
        "key_id": public.key_id.hex(),
        "modulus_bits": public.modulus_bits,
        "s": public.s,
        "decryption": public.decryption.value,
        "teachers": public.teachers,
        "threshold": public.threshold,
    }


def _show(console: Console, result: dict[str, object]) -> None:
    for name, value in result.items():
        if name == "share_files" and isinstance(value, list):
            console.print(f"{name:>18}  {value[0]} … {value[-1]}", soft_wrap=True)
        elif name != "warnings":
            console.print(f"{name:>18}  {value}", soft_wrap=True)


def _share_name(index: int, teachers: int) -> str:
    return f"teacher-{index:0{len(str(teachers))}d}.share"


def _read_secrets(passphrase_file: Path | None, key_file: Path | None) -> list[bytes]:
    """The passphrases given: none, one for all shares, or one for each teacher."""
    if passphrase_file is not None and key_file is not None:
        raise InputError("a passphrase file and a key file were given", hint="give one of them")
    if key_file is not None:
        return [read_file(key_file)]
    if passphrase_file is not None:
        lines = read_file(passphrase_file).splitlines()
        if not lines:
            raise InputError(
                "the passphrase file is empty", hint="write one line, or one for each teacher"
            )
        return lines
    if PASSPHRASE_VARIABLE in os.environ:
        return [os.fsencode(os.environ[PASSPHRASE_VARIABLE])]
    return []


def _secrets_for_all(secrets: list[bytes], teachers: int) -> list[bytes]:
    """One for each teacher, checked before any work is done."""
    if not secrets:
        raise InputError(
            "there is no passphrase",
            hint=(
                "give --passphrase-file or --key-file, "
                f"or set {PASSPHRASE_VARIABLE} in the environment"
            ),
        )
    if len(secrets) not in (1, teachers):
        raise InputError(
            f"the passphrase file has {len(secrets)} lines for {teachers} teachers",
            hint="write one line, or one for each teacher",
        )
    for secret in secrets:
        check_secret(secret)
    return secrets if len(secrets) == teachers else secrets * teachers


def _secret_of(secrets: list[bytes], index: int) -> bytes:
    if len(secrets) == 1:
        return secrets[0]
    if index > len(secrets):
        raise InputError(
            f"the passphrase file has {len(secrets)} lines, and this is the share of teacher "
            f"{index}",
            hint="give the file that was used to deal",
        )
    return secrets[index - 1]


def _write_all(
    folder: Path, dealt: DealtKey, names: Sequence[str], secrets: Sequence[bytes]
) -> None:
    """The sealed shares, then the public key."""
    sealed = map_over_cores(lambda pair: seal_share(*pair), zip(dealt.shares, secrets, strict=True))
    shares = [NewFile(name=name, data=data) for name, data in zip(names, sealed, strict=True)]
    public = NewFile(name=PUBLIC_NAME, data=dealt.public.to_bytes(), mode=PUBLIC)
    write_new_files(folder, [*shares, public])
