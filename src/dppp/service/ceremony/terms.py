"""The terms that a coordinator proposes: terms.toml, public, before anybody has joined.

How much noise they take follows when the key is dealt, since it depends on how many teachers came.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, ValidationError, model_validator

from dppp.errors import InputError, KeyMaterialError
from dppp.paillier.dealer import DEFAULT_MODULUS_BITS, require_dealable
from dppp.service.process.config import Section, first_problem, read_config

TERMS = "terms.toml"


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("write printable characters, without spaces around them")
    return text


def _distinct(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) != len(names):
        raise ValueError("each name may occur once only")
    return names


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Names = Annotated[tuple[Name, ...], AfterValidator(_distinct)]


class Terms(Section):
    """What is asked, of which data, at what price.

    None for colluders is max(1, N // 5), and for dropouts N // 10. `modulus_bits` and `s` are those
    of the key to be dealt.
    """

    name: Name
    data_id: Name
    class_names: Names = Field(min_length=2)
    features: Names = Field(min_length=1)
    epsilon: float = Field(gt=0)
    delta: float = Field(gt=0, lt=1)
    queries: int = Field(ge=1)
    colluders: int | None = Field(default=None, ge=0)
    dropouts: int | None = Field(default=None, ge=0)
    noise: Literal["auto", "binomial", "discrete-gaussian", "skellam", "polya"] = "auto"
    modulus_bits: int = DEFAULT_MODULUS_BITS
    s: int = 4
    abstain_below: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _require_dealable_terms(self) -> "Terms":
        try:
            require_dealable(teachers=2, threshold=2, modulus_bits=self.modulus_bits, s=self.s)
        except KeyMaterialError as error:
            raise ValueError(error.one_line) from error
        return self

    def to_toml(self) -> str:
        """The file that `read_terms` reads."""
        lines = ["# What this federation is asked, and at what price. Send it to everybody.\n"]
        for name, value in self.model_dump(exclude_none=True).items():
            lines.append(f"{name} = {_toml(value)}\n")
        return "".join(lines)


def make_terms(**values: Any) -> Terms:
    """Terms from what the coordinator typed."""
    try:
        return Terms(**values)
    except ValidationError as error:
        raise first_problem("these terms cannot be used", error) from None


def read_terms(folder: Path) -> Terms:
    """The terms in a coordinator's folder."""
    path = folder / TERMS
    if not path.is_file():
        raise InputError(
            f"there is no {TERMS} in {folder}", hint="make the folder with `dppp init`"
        )
    return read_config(path, Terms)


def _toml(value: object) -> str:
    """TOML's strings, numbers and lists of strings are JSON's, but for escapes beyond ASCII."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value, ensure_ascii=False)
