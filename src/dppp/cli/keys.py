"""`dppp keys`: deal a key, look at a key or a sealed share.

This is the dealer's process: it makes the key, writes every share encrypted with mode 0600, and
ends. Nothing is ever overwritten. Passphrases come from a file or the environment, never from a
flag, which other users of the machine could read.
"""

import contextlib
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dppp.cli.output import JsonOption, emit
from dppp.errors import InputError, WeakModulusWarning
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, DealtKey, check_terms, deal
from dppp.paillier.keys import Decryption, PublicKey
from dppp.paillier.parallel import map_over_cores
from dppp.paillier.sealing import check_secret, read_header, seal_share, unseal_share

app = typer.Typer(help="Deal a key, or look at one.")

PASSPHRASE_VARIABLE = "DPPP_PASSPHRASE"  # noqa: S105 - its name, not its value
PUBLIC_NAME = "public.key"
_DEALER_NOTE = "the dealer's process knew the whole key until it ended; run it where all trust it"

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
    teachers: Annotated[int, typer.Option(help="How many teachers get a share.")],
    threshold: Annotated[int, typer.Option(help="How many of them decrypt together.")],
    out: Annotated[Path, typer.Option(help="A folder for the files; made if missing.")],
    modulus_bits: Annotated[
        int, typer.Option(help="2048 or 3072; 1024 for reproducing the paper only.")
    ] = DEFAULT_MODULUS_BITS,
    s: Annotated[int, typer.Option(help="Damgard-Jurik's s; 1 is Paillier.")] = 1,
    decryption: Annotated[
        Decryption, typer.Option(help="root, or paper for comparison.")
    ] = Decryption.ROOT,
    passphrase_file: PassphraseFile = None,
    key_file: KeyFile = None,
    as_json: JsonOption = False,
) -> None:
    """Deal a new key: public.key, and a sealed share for each teacher."""
    check_terms(teachers=teachers, threshold=threshold, modulus_bits=modulus_bits, s=s)
    secrets = _secrets_for_all(_read_secrets(passphrase_file, key_file), teachers)
    names = [_share_name(index, teachers) for index in range(1, teachers + 1)]
    _refuse_to_overwrite(out, [PUBLIC_NAME, *names])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", WeakModulusWarning)
        dealt = deal(
            teachers=teachers,
            threshold=threshold,
            modulus_bits=modulus_bits,
            s=s,
            decryption=decryption,
        )
    notes = [str(warning.message) for warning in caught] + [_DEALER_NOTE]
    if len(set(secrets)) < teachers:
        notes.append("shares have the same passphrase: any teacher who gets another's can open it")
    _write_all(out, dealt, names, secrets)
    result = _describe(dealt.public) | {
        "public_key_file": PUBLIC_NAME,
        "share_files": names,
        "warnings": notes,
    }
    for note in () if as_json else notes:
        sys.stderr.write(f"dppp: note: {note}\n")
    emit(result, as_json=as_json, show=lambda console: _show(console, result))


@app.command("inspect")
def inspect_key(
    file: Annotated[Path, typer.Argument(help="A public key or a sealed share.")],
    passphrase_file: PassphraseFile = None,
    key_file: KeyFile = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a key file is; with a passphrase, check that a sealed share opens."""
    data = _read(file)
    if data.startswith(b"dppp sealed share"):
        result = _inspect_share(data, passphrase_file, key_file)
    elif data.startswith(b"dppp public key"):
        result = {"kind": "public key"} | _describe(PublicKey.from_bytes(data))
    else:
        raise InputError(
            f"{file.name} is neither a public key nor a sealed share; "
            "give a file that 'dppp keys deal' wrote"
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
        raise InputError("a passphrase file and a key file were given; give one of them")
    if key_file is not None:
        return [_read(key_file)]
    if passphrase_file is not None:
        lines = _read(passphrase_file).splitlines()
        if not lines:
            raise InputError("the passphrase file is empty; write one line, or one a teacher")
        return lines
    if PASSPHRASE_VARIABLE in os.environ:
        return [os.fsencode(os.environ[PASSPHRASE_VARIABLE])]
    return []


def _secrets_for_all(secrets: list[bytes], teachers: int) -> list[bytes]:
    """One for each teacher, checked before any work is done."""
    if not secrets:
        raise InputError(
            "no passphrase: give --passphrase-file or --key-file, "
            f"or set {PASSPHRASE_VARIABLE} in the environment"
        )
    if len(secrets) not in (1, teachers):
        raise InputError(
            f"the passphrase file has {len(secrets)} lines for {teachers} teachers; "
            "write one line, or one for each teacher"
        )
    for secret in secrets:
        check_secret(secret)
    return secrets if len(secrets) == teachers else secrets * teachers


def _secret_of(secrets: list[bytes], index: int) -> bytes:
    if len(secrets) == 1:
        return secrets[0]
    if index > len(secrets):
        raise InputError(
            f"the passphrase file has {len(secrets)} lines, and this is the share of "
            f"teacher {index}; give the file that was used to deal"
        )
    return secrets[index - 1]


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {file}: {error.strerror}; check the path") from error


def _refuse_to_overwrite(folder: Path, names: Sequence[str]) -> None:
    there = [name for name in names if (folder / name).exists()]
    if there:
        raise InputError(f"{there[0]} is in the folder already; choose an empty folder")


def _write_all(
    folder: Path, dealt: DealtKey, names: Sequence[str], secrets: Sequence[bytes]
) -> None:
    """Write the shares, then the public key; on any failure remove what was written."""
    written: list[Path] = []
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        sealed = map_over_cores(
            lambda pair: seal_share(*pair), zip(dealt.shares, secrets, strict=True)
        )
        for name, data in zip(names, sealed, strict=True):
            _write_new(folder / name, data, 0o600, written)
        _write_new(folder / PUBLIC_NAME, dealt.public.to_bytes(), 0o644, written)
    except OSError as error:
        for path in written:
            with contextlib.suppress(OSError):
                path.unlink()
        raise InputError(f"cannot write to {folder}: {error.strerror}; choose another") from error


def _write_new(path: Path, data: bytes, mode: int, written: list[Path]) -> None:
    """Create the file, never replace one, and have it on disk before going on."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    written.append(path)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
