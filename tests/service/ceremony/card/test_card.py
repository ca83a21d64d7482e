"""The privacy card: what it says, and that no name in a task can say anything else."""

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
import yaml
from tests.protocol import small
from tests.small_federation import kept_certificate

from dppp.federation import create_federation
from dppp.privacy.accounting import Spending, account
from dppp.protocol.question import Question
from dppp.protocol.task import Task
from dppp.service.ceremony.card.facts import NOT_PROMISED, Card, make_card, short_lines
from dppp.service.ceremony.card.page import escape_markdown, to_html, to_markdown
from dppp.service.ceremony.card.registry import registry_entry, to_registry_yaml

NASTY = (
    "<script>alert(1)</script>",
    "</td><img src=x onerror=alert(1)>",
    "[click](javascript:alert(1))",
    "![x](https://evil.example/x.png)",
    "a | b | c",
    "`code` **bold** _it_ ~~no~~ # h",
    "https://evil.example www.evil.example me@evil.example",
    "&lt;b&gt; &amp; \\` \\| \\",
    'yes: "no", {a: b} [c] - d # e',
    "!!python/object/apply:os.system ['id']",
    "*alias &anchor %tag @at ' \" \\n \\u0041",
    "---",
    "null",
    "1e5",
    "<!-- $x$ -->",
)
"""Names that are markup somewhere."""


@pytest.fixture(scope="module")
def task() -> Task:
    return small.small().task


def nasty_task(name: str) -> Task:
    certificate = kept_certificate(
        "skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2
    )
    parties = create_federation(
        name=name,
        data_id=name,
        class_names=[name, f"{name} too"],
        features=["weight"],
        certificate=certificate,
        models=[lambda rows: [1] * len(rows)] * 4,
    )
    teachers = tuple(
        replace(each, name=f"{name} {place}") for place, each in enumerate(parties.task.teachers)
    )
    return replace(parties.task, teachers=teachers)


class Reader(HTMLParser):
    """Which tags and attributes a page has, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data) -> None:
        self.words.append(data)


def plain_tags() -> tuple[set[str], set[str]]:
    reader = Reader(to_html(make_card(nasty_task("plain"))))
    return reader.tags, reader.attributes


@pytest.fixture(scope="module", params=NASTY)
def nasty(request: pytest.FixtureRequest) -> Card:
    return make_card(nasty_task(request.param))


@pytest.mark.attack
def test_no_name_becomes_a_tag_in_html(nasty: Card) -> None:
    reader = Reader(to_html(nasty))
    assert (reader.tags, reader.attributes) == plain_tags()
    assert any(nasty.task.name in words for words in reader.words)


def test_without_the_escape_a_name_becomes_a_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    card = make_card(nasty_task(NASTY[0]))
    monkeypatch.setattr("dppp.service.ceremony.card.page.html.escape", lambda text: text)
    assert "script" in Reader(to_html(card)).tags


def unescaped(text: str) -> str:
    """What CommonMark shows of text without any mark that counts."""
    return html.unescape(re.sub(r"\\([\\`*_{}\[\]<>#|~!$^])", r"\1", text))


@pytest.mark.attack
def test_no_name_becomes_markup_in_markdown(nasty: Card) -> None:
    name = nasty.task.name
    text = escape_markdown(name)
    bare = re.sub(r"\\[\\`*_{}\[\]<>#|~!$^]", "", text)
    assert not re.search(r"[`*_{}\[\]<>|~!]|://|@|\bwww\.", re.sub(r"&#?\w+;", "", bare))
    written = to_markdown(nasty)
    assert text in written
    rows = [line for line in written.splitlines() if line.startswith("|")]
    plain = to_markdown(make_card(nasty_task("plain"))).splitlines()
    assert len(rows) == len([line for line in plain if line.startswith("|")])
    for row, other in zip(rows, [line for line in plain if line.startswith("|")], strict=True):
        assert len(re.findall(r"(?<!\\)\|", re.sub(r"\\\\", "", row))) == other.count("|")
    assert unescaped(text) == name


@pytest.mark.attack
def test_no_name_becomes_anything_but_a_text_in_yaml(nasty: Card) -> None:
    written = yaml.safe_load(to_registry_yaml(nasty))
    assert written == registry_entry(nasty)
    assert written["deployment"]["basic"]["name"] == nasty.task.name


def test_a_card_says_everything_that_was_agreed(task: Task) -> None:
    text = " ".join(" ".join(line) for each in make_card(task).sections for line in each.lines)
    for each in (
        task.task_id.hex(),
        task.data_id,
        f"ε = {task.epsilon:g}, δ = {task.delta:g}",
        task.unit,
        task.cryptosystem,
        task.noise.name,
        f"up to {task.colluders} of",
        "dppp 0.",
        *(teacher.name for teacher in task.teachers),
        *NOT_PROMISED,
    ):
        assert each in text


def test_what_is_spent_follows_from_the_queries_that_were_answered(task: Task) -> None:
    spent = dict(make_card(task, charged=3).section("Price").lines)["Spent"]
    epsilon = account([Spending(noise=task.noise, queries=3)], task.delta)
    assert spent == (
        f"ε = {epsilon:.4g} at δ = {task.delta:g}, by 3 answered queries; by the aggregator's count"
    )
    assert "nothing yet" in dict(make_card(task, charged=0).section("Price").lines)["Spent"]


def task_of(question: Question, names: Sequence[str], **noise: int) -> Task:
    certificate = kept_certificate(
        "skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=len(names), **noise
    )
    return create_federation(
        name="ward",
        class_names=names,
        features=["weight"],
        certificate=certificate,
        models=[lambda rows: [None] * len(rows)] * 4,
        question=question,
    ).task


def labels_task() -> Task:
    return task_of(Question.of_labels(most_labels=2), list("abcdef"), max_labels=2)


def number_task() -> Task:
    return task_of(Question.of_number(low=0, high=30, levels=60), ["dose"], levels=60)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            labels_task,
            (
                "exchange up to 2 labels for 2 others, so that 4 counts move by one each",
                "distribution of the 4 counts that move",
                "Rare labels lose most",
                "at least 50% of the votes",
            ),
        ),
        (
            number_task,
            (
                "so that the one count moves by up to 60 steps",
                "distribution of the one count that moves by up to 60 steps",
                "votes from one end of the range to the other",
                "pull answers inwards",
                "divided by the number of votes",
            ),
        ),
    ],
)
def test_a_card_of_another_question_says_what_moves_there(
    make: Callable[[], Task], said: tuple[str, ...]
) -> None:
    text = to_registry_yaml(make_card(make()))
    assert [each for each in said if each not in text] == []
    assert "from one class to another" not in text
    assert "Rare classes" not in text


@pytest.mark.parametrize("make", [labels_task, number_task])
def test_what_is_spent_is_of_the_question_that_was_asked(make: Callable[[], Task]) -> None:
    task = make()
    spent = dict(make_card(task, charged=5).section("Price").lines)["Spent"]
    assert float(spent.split()[2]) == pytest.approx(task.epsilon, rel=1e-2)


def test_no_colluders_are_named_on_the_card() -> None:
    certificate = kept_certificate(
        "skellam", epsilon=8, delta=1e-5, teachers=4, colluders=0, queries=5, classes=2
    )
    parties = create_federation(
        name="alone",
        class_names=["a", "b"],
        features=["x"],
        certificate=certificate,
        models=[lambda rows: [1] * len(rows)] * 4,
    )
    card = make_card(parties.task)
    assert "NOT a teacher who sees the counts" in card.text("Against whom")


def test_the_short_form_has_price_unit_and_what_is_not_promised(task: Task) -> None:
    names = [name for name, _ in short_lines(make_card(task))]
    assert {"protects", "price", "against", "ballots", "not"} == set(names)


def deployment_of(card: Card) -> dict[str, Any]:
    entry = registry_entry(card)["deployment"]
    assert isinstance(entry, dict)
    return entry


FIELDS = {
    "basic": "name data_curators description intended_use data_product_type data_product_region "
    "data_product_sector publication_date",
    "dp_variant": "variant_name data_domain unprotected_quantities",
    "privacy_loss": "privacy_unit privacy_unit_details number_of_privacy_units privacy_parameters "
    "privacy_parameters_details",
    "deployment_model": "model_name model_name_details trust_assumptions actors release_type "
    "release_type_details data_source_type data_source_type_details access_type "
    "access_type_details",
    "implementation": "preprocessing_and_hyperparameter_tuning mechanisms composition "
    "post_processing justification utility additional_information",
    "administrative": "evidence_sources status registry_authors tier",
}
"""Of the registry's own template of a record; its schema allows no others."""


def test_the_registry_knows_every_field_of_an_entry(task: Task) -> None:
    card = make_card(task)
    assert list(registry_entry(card)) == ["url_slug", "deployment"]
    for part, fields in deployment_of(card).items():
        assert set(fields) <= set(FIELDS[part].split()), part
    assert set(deployment_of(card)["implementation"]) == set(FIELDS["implementation"].split())
    assert registry_entry(make_card(nasty_task("Grüße, <b>")))["url_slug"] == "gr-e-b"
    assert registry_entry(make_card(nasty_task("日本")))["url_slug"] == "to-be-filled-in"


def test_the_registry_entry_has_the_fields_of_the_registry(task: Task) -> None:
    entry = registry_entry(make_card(task))["deployment"]
    assert isinstance(entry, dict)
    assert list(entry) == [
        "basic",
        "dp_variant",
        "privacy_loss",
        "deployment_model",
        "implementation",
        "administrative",
    ]
    assert entry["privacy_loss"]["privacy_parameters"] == {
        "epsilon": task.epsilon,
        "delta": task.delta,
    }
    assert entry["dp_variant"]["variant_name"] == "Approximate DP"
