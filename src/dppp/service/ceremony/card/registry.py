"""A card as an entry of the OpenDP deployments registry: YAML with the registry's own fields.

The fields are those of github.com/opendp/deployments-registry-data. What only the curator knows
says so: an entry is a draft until somebody has filled that in. Texts are written as JSON strings,
which YAML reads as they are, so that no name can become a key, a tag or an anchor.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from dppp import __version__
from dppp.protocol.units import describe_unit
from dppp.service.ceremony.card.facts import NOT_PROMISED, Card
from dppp.service.ceremony.card.of_question import post_processing

_TO_FILL_IN = "to be filled in by the curator"
_TRUST = (
    "Nobody is trusted with another's votes. The promise holds while at most {colluders} of "
    "{teachers} teachers pool what they know with aggregator, broker and querier, and while the "
    "assumptions of the cryptosystem hold, which stand under mechanisms."
)


def to_registry_yaml(card: Card) -> str:
    """The whole file."""
    return "\n".join(_lines(registry_entry(card), 0)) + "\n"


def registry_entry(card: Card) -> dict[str, object]:
    """The same as plain values."""
    return {
        "url_slug": _slug(card.task.name),
        "deployment": {
            "basic": _basic(card),
            "dp_variant": {
                "variant_name": "Approximate DP",
                "data_domain": "Records that each teacher trained its models on: data id "
                f"{card.task.data_id}. They never leave their teacher.",
                "unprotected_quantities": "Numbers of teachers, of votes of each teacher and of "
                "queries; who took part; the rows that are asked about.",
            },
            "privacy_loss": {
                "privacy_unit": card.task.unit,
                "privacy_unit_details": f"{describe_unit(card.task.unit)}. "
                + card.text("What is protected"),
                "privacy_parameters": {"epsilon": card.task.epsilon, "delta": card.task.delta},
                "privacy_parameters_details": card.text("Price"),
            },
            "deployment_model": {
                "model_name": "Federated",
                "model_name_details": "Each teacher adds its own share of the noise before its "
                f"votes leave it; ballots are added up under {card.task.cryptosystem}.",
                "trust_assumptions": _TRUST.format(
                    colluders=card.task.colluders, teachers=len(card.task.teachers)
                ),
                "actors": card.text("Against whom"),
                "release_type": "Many releases",
                "release_type_details": f"At most {card.task.queries:,} queries, all within the "
                "total; each teacher refuses more.",
                "data_source_type": "Dynamic",
                "data_source_type_details": "A teacher may train its models anew at any time; what "
                "was spent stays spent.",
                "access_type": "Interactive",
                "access_type_details": "Queriers ask rows of their own until the queries of the "
                "task are used up.",
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "Each model is trained from its own "
                "shard of the records and nothing else; nothing is fitted over shards. Nobody but "
                "the teacher itself can check that.",
                "mechanisms": f"dppp {__version__}. {card.text('Noise and accounting')} "
                f"{card.text('Cryptography')}",
                "composition": "Privacy loss distributions of all queries, composed exactly; "
                "tasks on the same data add up in each teacher's ledger.",
                "post_processing": post_processing(card.task),
                "justification": card.text("Questions of NIST SP 800-226"),
                "utility": _utility(card),
                "additional_information": f"Task id {card.task.task_id.hex()}. Not promised: "
                + " ".join(NOT_PROMISED),
            },
            "administrative": {
                "status": "Draft",
                "registry_authors": [_TO_FILL_IN],
                "tier": 3,
            },
        },
    }


def _slug(name: str) -> str:
    return re.sub("[^a-z0-9]+", "-", name.lower()).strip("-") or "to-be-filled-in"


def _utility(card: Card) -> str:
    answers = dict(card.section("Questions of NIST SP 800-226").lines)
    return answers["How useful and how biased is the result?"]


def _basic(card: Card) -> dict[str, object]:
    task = card.task
    return {
        "name": task.name,
        "data_curators": [
            {"data_curator_name": teacher.name, "data_curator_type": _TO_FILL_IN}
            for teacher in task.teachers
        ],
        "description": f"{len(task.teachers)} organisations label rows together by noisy votes of "
        f"their own models. Question: {task.question.describe(task.class_names)}. "
        f"Names: {', '.join(task.class_names)}.",
        "intended_use": _TO_FILL_IN,
        "data_product_type": "Summary statistics",
        "data_product_region": _TO_FILL_IN,
        "data_product_sector": _TO_FILL_IN,
        "publication_date": _TO_FILL_IN,
    }


def _lines(value: object, depth: int) -> Iterator[str]:
    """YAML in block form; every text in double quotes."""
    indent = "  " * depth
    if isinstance(value, Mapping):
        for name, each in value.items():
            if isinstance(each, Mapping | list):
                yield f"{indent}{name}:"
                yield from _lines(each, depth + 1)
            else:
                yield f"{indent}{name}: {_scalar(each)}"
    elif isinstance(value, Sequence):
        for each in value:
            first, *rest = _lines(each, depth + 1) if isinstance(each, Mapping) else [_scalar(each)]
            yield f"{indent}- {first.strip()}"
            yield from rest


def _scalar(value: object) -> str:
    """As JSON. A number like 1e-05 would be a text to YAML 1.1, so it gets its point."""
    if isinstance(value, float):
        text = repr(value)
        return text.replace("e", ".0e") if "e" in text and "." not in text else text
    return json.dumps(value, ensure_ascii=False)
