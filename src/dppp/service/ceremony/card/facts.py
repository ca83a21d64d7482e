"""What a privacy card says, in its order, as plain text: no markup of any kind is in here.

Made from a task alone, or with a teacher's ledger, and with the federation file's names if there is
one. Names in a task come from others; whoever shows a card escapes every word of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from dppp import __version__
from dppp.privacy.accounting import account
from dppp.privacy.ledger.summary import DataSummary
from dppp.protocol.task import Task
from dppp.protocol.units import describe_unit
from dppp.service.ceremony.card.of_question import (
    bias_and_use,
    losses_accounted,
    moved_by_one_vote,
    noise_in_a_count,
)

NOT_PROMISED = (
    "Right answers: one dishonest teacher who stays within the noise can decide them.",
    "Secrecy of the rows that are asked about from the teachers, who must read them.",
    "Anything once more teachers collude than the promise counts on.",
    "Anything about what the answers teach in general: that smoking is bad holds for you too.",
    "Anything against timing: how long a teacher's model thinks is not covered.",
    "Anything if the cryptography is broken, now or later: a recorded ballot can be kept.",
    "Anything for data that is also used elsewhere and counted in another ledger.",
)

_ASSUMPTIONS = {
    "masks": (
        "Ring-LWE at the size named here; gap Diffie-Hellman on Curve25519; SHA-256, SHAKE and "
        "AES-CTR as random oracles and generators; Ed25519 signatures cannot be forged; honest "
        "teachers draw good random numbers, keep their ledgers and know the time. No dealer. "
        "(docs/masks.md, section 6)"
    ),
    "paillier": (
        "The dealer was honest and forgot the key; decisional composite residuosity; short "
        "exponents; the hash is a random oracle; colluders' ballots can be extracted; Ed25519 "
        "signatures cannot be forged; honest teachers keep their ledgers. "
        "(docs/protocol.md, section 7.5)"
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Who runs what, where a federation file says so."""

    aggregator: str
    broker: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with lines under it; a line has a name, or none in a list."""

    title: str
    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """Everything that is shown; `task` is at hand for the registry's entry."""

    task: Task
    names: Names | None
    sections: tuple[Section, ...]

    def section(self, title: str) -> Section:
        """The section of this title."""
        return next(each for each in self.sections if each.title == title)

    def text(self, title: str) -> str:
        """A section as one text, for a registry's field."""
        return " ".join(_sentence(*line) for line in self.section(title).lines)


def make_card(
    task: Task,
    *,
    names: Names | None = None,
    data: DataSummary | None = None,
    charged: int | None = None,
) -> Card:
    """The card of a task; `data` is what one teacher's ledger says of the task's data.

    `charged` are the queries that an aggregator counted, where no ledger is at hand.
    """
    return Card(
        task=task,
        names=names,
        sections=(
            Section(title="What is protected", lines=_protected(task)),
            Section(title="Against whom", lines=_adversary(task, names)),
            Section(title="Price", lines=_price(task, data, charged)),
            Section(title="Noise and accounting", lines=_noise(task)),
            Section(title="Cryptography", lines=_cryptography(task)),
            Section(title="What is not promised", lines=_listed(NOT_PROMISED)),
            Section(title="Questions of NIST SP 800-226", lines=_nist(task)),
            Section(title="Which task", lines=_identity(task)),
        ),
    )


def short_lines(card: Card) -> list[tuple[str, str]]:
    """What an operator sees before it says yes."""
    task = card.task
    return [
        ("protects", f"{task.unit}: {describe_unit(task.unit)}"),
        ("price", _promise(task)),
        (
            "against",
            f"aggregator, broker and querier with any {task.colluders} of "
            f"{len(task.teachers)} teachers",
        ),
        ("ballots", f"sealed by {task.cryptosystem}; {_size(task)}"),
        ("not", NOT_PROMISED[0]),
        ("not", NOT_PROMISED[1]),
    ]


def _sentence(name: str, value: str) -> str:
    """A line as running text: its name, if it has one, and one full stop at the end."""
    said = f"{name}{'' if name.endswith('?') else ':'} {value}" if name else value
    return said if said.endswith((".", "?", "!", ")")) else f"{said}."


def _listed(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return tuple(("", text) for text in texts)


def _promise(task: Task) -> str:
    return f"ε = {task.epsilon:g}, δ = {task.delta:g} in total for {task.queries:,} queries"


def _protected(task: Task) -> tuple[tuple[str, str], ...]:
    low, high = min(task.votes), max(task.votes)
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return (
        ("Unit", f"{task.unit}: {describe_unit(task.unit)}"),
        ("Data", task.data_id),
        (
            "Neighbours",
            "two versions of one teacher's data that differ in one unit; the vote of one model "
            f"may then {moved_by_one_vote(task)} in every query",
        ),
        ("Votes", f"{each} of each teacher, {sum(task.votes):,} in all; public"),
        ("Question", task.question.describe(task.class_names)),
        ("Released", f"per query {_counts_released(task)}"),
        ("Names", ", ".join(task.class_names)),
    )


def _adversary(task: Task, names: Names | None) -> tuple[tuple[str, str], ...]:
    trust = task.trust
    colluders = (
        f"up to {trust.colluders} of {trust.teachers} teachers, fixed beforehand, who pool all "
        "they know with the aggregator, the broker and the querier"
        if trust.colluders
        else "aggregator, broker and querier, but NOT a teacher who sees the counts: it knows its "
        "own noise (C = 0)"
    )
    dropouts = f"up to {trust.dropouts} teachers may vanish in any query, beside these"
    if not trust.survives_withholding:
        dropouts += "; colluders who stay silent as well can stop a batch"
    hosts = "" if names is None else f" at {', '.join(names.hosts)}"
    return (
        ("Adversary (C)", colluders),
        ("Dropouts (D)", dropouts),
        ("Noise counts on", f"{trust.honest_shares} honest shares in every count"),
        ("To open a list", f"{trust.threshold} teachers must have endorsed it"),
        ("Teachers", ", ".join(teacher.name for teacher in task.teachers)),
        ("Aggregator", "untrusted" if names is None else f"{names.aggregator}; untrusted"),
        ("Broker", "untrusted" if names is None else f"{names.broker}{hosts}; untrusted"),
        ("Querier", "whoever has a token of the aggregator; sees noisy counts and answers"),
    )


def _price(
    task: Task, data: DataSummary | None, charged: int | None
) -> tuple[tuple[str, str], ...]:
    certificate = task.certificate
    delivered = certificate.exact_delta + certificate.sampling_delta
    lines = [
        ("Promised", _promise(task)),
        (
            "Certified",
            f"{'yes' if certificate.certified else 'NO'}: the exact δ at ε = {task.epsilon:g} is "
            f"{delivered:.6g}",
        ),
    ]
    if data is None and charged is None:
        return (*lines, ("Spent", "not known here: each teacher's own ledger counts it"))
    if data is None:
        by_aggregator = f"{_spent(task, charged or 0)}; by the aggregator's count"
        return (*lines, ("Spent", by_aggregator))
    ours = [each for each in data.tasks if each.task_id == task.task_id]
    answered = sum(each.answered for each in ours)
    return (
        *lines,
        ("Spent", _spent(task, answered)),
        ("Reserved", f"{data.reserved} of the data's cap, by {_tasks(len(data.tasks))}"),
        ("Cap of the data", f"{data.cap}, for good; {data.left} left for other tasks"),
        ("Queries left", f"{task.queries - answered:,} of {task.queries:,}"),
    )


def _spent(task: Task, answered: int) -> str:
    if answered == 0:
        return "nothing yet: no query was answered"
    epsilon = account([task.promise.spending(task.noise, answered)], task.delta)
    return f"ε = {epsilon:.4g} at δ = {task.delta:g}, by {answered:,} answered queries"


def _tasks(number: int) -> str:
    return "one task" if number == 1 else f"{number} tasks"


def _noise(task: Task) -> tuple[tuple[str, str], ...]:
    noise = task.noise
    return (
        ("Noise", f"{noise.name}, {noise.share_in_brief} per share, drawn by each teacher"),
        (
            "In a count",
            f"variance {noise.variance:.6g} of the honest shares alone, standard deviation "
            f"{noise_in_a_count(task)}",
        ),
        (
            "Accounting",
            f"exact privacy loss distribution of {losses_accounted(task)}, composed over all "
            "queries, rounded up; adaptive queries allowed",
        ),
        (
            "Sampling",
            "integer tables of 128-bit thresholds, AES-256-CTR; what bounding them changes is in δ",
        ),
        ("Version", f"dppp {__version__}"),
    )


def _size(task: Task) -> str:
    if task.masks is None:
        return f"s = {task.s}, plaintexts of {task.plaintext_bits:,} bits, one key from a dealer"
    masks = task.masks
    return (
        f"ring of degree {masks.degree:,}, modulus of {masks.modulus_bits} bits, "
        f"{masks.security_bits} bits of security, keys for {masks.epoch_seconds / 3600:g} hours"
    )


def _cryptography(task: Task) -> tuple[tuple[str, str], ...]:
    return (
        ("Cryptosystem", task.cryptosystem),
        ("Size", _size(task)),
        ("Assumptions", _ASSUMPTIONS[task.cryptosystem]),
        ("Kind of promise", "computational: not against unlimited computing power"),
    )


def _nist(task: Task) -> tuple[tuple[str, str], ...]:
    """The factors of the publication's pyramid from top to bottom, as questions, in our words."""
    trust = task.trust
    return (
        ("How strong is the promise?", f"{_promise(task)}; approximate differential privacy."),
        ("What is the unit of privacy?", f"{task.unit}: {describe_unit(task.unit)}."),
        (
            "How do several releases add up?",
            "All queries of the task are in the total. Tasks on the same data add up in each "
            "teacher's ledger, under a cap that is fixed for good.",
        ),
        (
            "Is the algorithm right?",
            "δ is computed from the masses of the noise and not from a bound; `dppp audit` "
            "attacks the promise and shows what it proves to be spent.",
        ),
        (
            "How useful and how biased is the result?",
            bias_and_use(task),
        ),
        (
            "Is the implementation safe from floating point?",
            "Yes: votes, noise and counts are integers; floats only size the noise, rounded up.",
        ),
        (
            "Are there side channels?",
            "Timing of the models is not covered. Taking part does not depend on the data.",
        ),
        (
            "What is the trust model?",
            f"Distributed: nobody sees another's votes. Holds against {trust.colluders} of "
            f"{trust.teachers} teachers with aggregator, broker and querier.",
        ),
        (
            "How is access controlled and secured?",
            "Between organisations by mutual TLS and signed messages; each teacher refuses past "
            "its own ledger. Who may read the records is each teacher's own matter.",
        ),
        (
            "What does collecting the data expose?",
            "Nothing new: records stay with the teacher that has them.",
        ),
    )


def _identity(task: Task) -> tuple[tuple[str, str], ...]:
    return (
        ("Task", task.name),
        ("Task id", task.task_id.hex()),
        ("What the words mean", "docs/privacy.md and docs/protocol.md of dppp"),
    )


def _counts_released(task: Task) -> str:
    if task.question.kind == "number":
        return "one noisy sum of all votes, and the mean that follows from it"
    return f"one noisy count for each of {len(task.class_names)} names"
