"""The task: what all parties agree on before the first query.

Its hash is in every message, so nobody can be made to answer under other terms. A task checks
itself when it is made: every party works out the certificate of the noise, the range of a ballot's
entries and the threshold anew, and refuses a task that is uncertified or contradicts itself.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from dppp.errors import GroupElementError, InputError, TaskError, message_of
from dppp.hashing import HASH_BYTES, hash_parts
from dppp.masks.curve25519 import LOW_ORDER_U, decode_u
from dppp.masks.parameters import Parameters, choose_parameters
from dppp.paillier.keys import LARGEST_S, LONGEST_MODULUS_BITS, Decryption, PublicKey
from dppp.paillier.packing import Packing
from dppp.privacy.certificate import Certificate, Promise, issue_certificate
from dppp.privacy.noise import Noise, noise_from_numbers, parameter_names, require_narrow
from dppp.privacy.sampling import sampling_table
from dppp.privacy.trust import Trust
from dppp.protocol.columns import (
    Column,
    ColumnType,
    as_columns,
    require_types,
    types_of,
)
from dppp.protocol.messages import TaskId
from dppp.protocol.question import CHOICE, Question
from dppp.protocol.units import MOST_VOTES, require_unit
from dppp.protocol.wire import encode
from dppp.whole_numbers import require_whole

_LONGEST_NAME = 200
_SIGNING_KEY_BYTES = 32

MOST_TASK_QUERIES = 1_000_000
"""Queries of a task; more take several tasks."""

_MORE_ANSWER_BYTES = 2**14
"""For what is in an answer beside its ciphertexts or shares: ids, proof, signature."""

_MORE_ROW_BYTES = 512
"""Under masks, for what there is of each teacher beside a row of its secret: header, tags, MAC."""

DAY_SECONDS = 86_400
SHORTEST_EPOCH_SECONDS = 60
LONGEST_EPOCH_SECONDS = 30 * DAY_SECONDS

_FEW_QUERIES = 10_000
_LONGEST_SHARE_REACH = 2**17
_LONGEST_REACH = 2**20
"""Noise that reaches further from its centre takes minutes and gigabytes to work out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherEntry:
    """One teacher's name, public keys and votes; its place in the task is its index, from 1.

    It signs with Ed25519. Queriers seal their rows to its row key, which is of X25519.
    """

    name: str
    signing_key: bytes
    row_key: bytes
    votes: int = 1

    def __post_init__(self) -> None:
        _require_name("a teacher's name", self.name)
        if len(self.signing_key) != _SIGNING_KEY_BYTES:
            raise TaskError(f"the signing key of {self.name} is not an Ed25519 key of 32 bytes")
        _require_row_key(self.name, self.row_key)
        if not 1 <= self.votes <= MOST_VOTES:
            raise TaskError(f"{self.name} casts 1 to {MOST_VOTES:,} votes, not {self.votes}")


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseTerms:
    """The noise of the honest shares, by its family's parameters in the family's own order."""

    family: str
    parameters: tuple[float, ...]
    shares: int

    @classmethod
    def of(cls, noise: Noise) -> Self:
        """The terms of this noise."""
        names = parameter_names(type(noise))
        values = tuple(float(getattr(noise, name)) for name in names)
        return cls(family=noise.name, parameters=values, shares=noise.shares)

    def to_noise(self) -> Noise:
        """The noise of these terms."""
        return noise_from_numbers(self.family, self.parameters, self.shares)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaskTerms:
    """The ring of the masks, and how long an epoch of sealing keys lasts."""

    degree: int
    modulus_bits: int
    slot_bits: int
    slots_per_coefficient: int
    security_bits: int
    epoch_seconds: int

    @classmethod
    def of(cls, parameters: Parameters, *, epoch_seconds: int) -> Self:
        """The terms of this ring; `security_bits` is what the argument leaves of the ring's."""
        return cls(
            degree=parameters.degree,
            modulus_bits=parameters.modulus_bits,
            slot_bits=parameters.slot_bits,
            slots_per_coefficient=parameters.slots_per_coefficient,
            security_bits=parameters.security_after_loss,
            epoch_seconds=epoch_seconds,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """The terms. Make one with `agree`; reading one from the wire checks all the same.

    >>> from dppp import calibrate, create_federation
    >>> from dppp.paillier.dealer import deal
    >>> promise = calibrate("skellam", epsilon=8, delta=1e-5, teachers=4, queries=5, classes=2)
    >>> key = deal(teachers=4, threshold=3, modulus_bits=512, insecure_testing=True)
    >>> parties = create_federation(
    ...     name="fruit",
    ...     class_names=["apple", "pear"],
    ...     features=["weight"],
    ...     certificate=promise,
    ...     models=[lambda rows: [1] * len(rows)] * 4,
    ...     key=key,
    ... )
    >>> task = parties.task
    >>> task.name, task.class_names, task.queries, len(task.task_id)
    ('fruit', ('apple', 'pear'), 5, 32)
    >>> task.certificate.certified
    True
    """

    KIND: ClassVar[str] = "task"
    SIZE_LIMIT: ClassVar[int] = 4 * 2**20
    name: str
    data_id: str
    class_names: tuple[str, ...]
    features: tuple[str, ...]
    teachers: tuple[TeacherEntry, ...]
    aggregator_key: bytes
    colluders: int
    dropouts: int
    epsilon: float
    delta: float
    queries: int
    noise_terms: NoiseTerms
    entry_bound: int
    abstain_below: int | None
    key_id: bytes
    s: int
    plaintext_bits: int
    masks: MaskTerms | None = None
    unit: str = "teacher"
    question: Question = CHOICE
    column_types: tuple[ColumnType, ...] = ()
    """What each feature is; none where all are numbers that are always there."""
    succeeds: bytes | None = None
    """The task that this one takes the place of, on the rest of what was reserved for it."""
    task_id: TaskId = field(init=False, repr=False, compare=False)
    """The hash of all terms. Every message is held to it, so it is worked out once."""
    columns: tuple[Column, ...] = field(init=False, repr=False, compare=False)
    """What a row holds: the features with their types."""
    _ring: Parameters | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            _check(self)
        except TaskError:
            raise
        except (InputError, ArithmeticError, ValueError) as error:
            hint = error.hint if isinstance(error, InputError) else None
            raise TaskError(f"a task that cannot be: {message_of(error)}", hint=hint) from error
        object.__setattr__(self, "task_id", TaskId(hash_parts("dppp task 2", (encode(self),))))
        object.__setattr__(self, "columns", _columns(self))
        object.__setattr__(self, "_ring", None if self.masks is None else _ring(self, self.masks))

    @property
    def trust(self) -> Trust:
        """Teachers, colluders and dropouts, and what follows from them."""
        return Trust(teachers=len(self.teachers), colluders=self.colluders, dropouts=self.dropouts)

    @property
    def promise(self) -> Promise:
        """The total (ε, δ) over all queries."""
        return Promise(
            epsilon=self.epsilon,
            delta=self.delta,
            queries=self.queries,
            classes=len(self.class_names),
            change=self.question.change(len(self.class_names)),
        )

    @property
    def votes(self) -> tuple[int, ...]:
        """How many votes each teacher casts, in the order of their indexes."""
        return tuple(teacher.votes for teacher in self.teachers)

    def votes_of(self, participants: Sequence[int]) -> int:
        """How many votes these teachers cast together."""
        return sum(self.teachers[index - 1].votes for index in participants)

    @property
    def noise(self) -> Noise:
        """The noise of the honest shares together."""
        return self.noise_terms.to_noise()

    @property
    def certificate(self) -> Certificate:
        """What the noise delivers, worked out here, and for whom."""
        worked_out = _certificate(self.noise, self.promise, self.trust)
        return replace(worked_out, unit=self.unit, votes=self.votes)

    @property
    def cryptosystem(self) -> str:
        """How ballots are sealed: `masks` or `paillier`."""
        return "paillier" if self.masks is None else "masks"

    @property
    def parameters(self) -> Parameters:
        """The ring of a task under masks, and what follows from it."""
        assert self._ring is not None, "only masks have a ring"
        return self._ring

    def epoch_at(self, now: int) -> int:
        """The number of the epoch that is on at this time of the common clock."""
        assert self.masks is not None, "only masks have epochs"
        return now // self.masks.epoch_seconds

    @property
    def packing(self) -> Packing:
        """How entries lie in plaintexts."""
        return Packing(
            contributions=len(self.teachers),
            entry_bound=self.entry_bound,
            plaintext_bits=self.plaintext_bits,
        )

    def ciphertexts_for(self, queries: int) -> int:
        """How many ciphertexts a ballot on this many queries has."""
        return self.packing.plaintexts_for(queries * len(self.class_names))

    def answer_bytes(self, queries: int) -> int:
        """A bound on a ballot on this many queries; no other message of a teacher is longer."""
        if self.masks is not None:
            counts = max(1, queries * len(self.class_names))
            return self.parameters.bytes_for(counts) + self._more_masked_bytes
        modulus_bits = self.plaintext_bits // self.s + 1
        ciphertext_bytes = (self.s + 1) * modulus_bits // 8 + 1
        return self.ciphertexts_for(queries) * ciphertext_bytes + _MORE_ANSWER_BYTES

    def list_bytes(self, queries: int) -> int:
        """A bound on a list of ballots on this many queries, as one teacher is sent it.

        Under paillier it holds all ballots; under masks digests of headers, and each dealer's rows.
        """
        if self.masks is not None:
            return self.parameters.bytes_for(1) + self._more_masked_bytes
        return self.answer_bytes(queries) * len(self.teachers)

    @property
    def _more_masked_bytes(self) -> int:
        return _MORE_ROW_BYTES * len(self.teachers) + _MORE_ANSWER_BYTES

    def require_key(self, public: PublicKey) -> None:
        """Refuse a public key that is not the one of the task."""
        if self.masks is not None:
            raise TaskError("a task under masks has no key")
        expected = (self.key_id, self.s, self.plaintext_bits, self.trust.teachers)
        found = (public.key_id, public.s, public.plaintext_bits, public.teachers)
        if found != expected or public.threshold != self.trust.threshold:
            raise TaskError(
                "this public key is not the task's: key id, s, size, teachers and threshold must "
                f"agree (threshold {self.trust.threshold} of {self.trust.teachers})"
            )
        if public.decryption is not Decryption.ROOT:
            raise TaskError(
                "a task needs a key with root decryption, whose openings can be checked"
            )


def agree(
    *,
    name: str,
    data_id: str,
    class_names: Sequence[str],
    features: Sequence[str | Column],
    teachers: Sequence[TeacherEntry],
    aggregator_key: bytes,
    certificate: Certificate,
    public: PublicKey | None = None,
    abstain_below: int | None = None,
    labels_per_batch: int | None = None,
    epoch_seconds: int = DAY_SECONDS,
    unit: str | None = None,
    succeeds: bytes | None = None,
    question: Question = CHOICE,
) -> Task:
    """A task from a certificate; run by whoever proposes it.

    The certificate must be for this question: what one vote can do to the counts is part of it.

    A feature is a number that is always there, unless it is given as a column of another type.
    The unit is whose change the promise covers. If none is given it is the whole teacher where
    everybody casts one vote, and a record where somebody casts more.
    With a public key its cryptosystem is paillier. Without one it is masks, and the ring is the
    one that takes the fewest bytes for batches of `labels_per_batch` queries (all, if not given).
    """
    if certificate.trust.teachers != len(teachers):
        raise TaskError(
            f"the noise was calibrated for {certificate.trust.teachers} teachers, not for "
            f"{len(teachers)}",
            hint="calibrate anew",
        )
    change = question.change(len(class_names))
    if certificate.promise.change != change:
        raise TaskError(
            "the noise was calibrated for another question: there one vote moves "
            f"{certificate.promise.change.moved} counts by {certificate.promise.change.shift}, "
            f"here {change.moved} by {change.shift}",
            hint="calibrate with the same max_labels or levels as the question has",
        )
    columns = as_columns(features)
    most_votes = max((teacher.votes for teacher in teachers), default=1)
    bound = entry_bound(certificate.noise, votes=most_votes * question.largest_entry)
    counts = len(class_names) * (labels_per_batch or certificate.promise.queries)
    task = Task(
        name=name,
        data_id=data_id,
        class_names=tuple(class_names),
        features=tuple(column.name for column in columns),
        column_types=types_of(columns),
        teachers=tuple(teachers),
        aggregator_key=aggregator_key,
        colluders=certificate.trust.colluders,
        dropouts=certificate.trust.dropouts,
        epsilon=float(certificate.promise.epsilon),
        delta=float(certificate.promise.delta),
        queries=certificate.promise.queries,
        noise_terms=NoiseTerms.of(certificate.noise),
        entry_bound=bound,
        abstain_below=None
        if abstain_below is None
        else require_whole("abstain_below", abstain_below, least=0),
        key_id=bytes(HASH_BYTES) if public is None else public.key_id,
        s=0 if public is None else public.s,
        plaintext_bits=0 if public is None else public.plaintext_bits,
        masks=_mask_terms(certificate, bound, counts, epoch_seconds) if public is None else None,
        unit=unit or ("teacher" if most_votes == 1 else "record"),
        succeeds=succeeds,
        question=question,
    )
    if public is not None:
        task.require_key(public)
    return task


def _mask_terms(certificate: Certificate, bound: int, counts: int, epoch_seconds: int) -> MaskTerms:
    trust = certificate.trust
    parameters = choose_parameters(
        teachers=trust.teachers,
        colluders=trust.colluders,
        dropouts=trust.dropouts,
        largest_sum=trust.teachers * bound,
        counts=counts,
    )
    return MaskTerms.of(parameters, epoch_seconds=epoch_seconds)


def entry_bound(noise: Noise, *, votes: int = 1) -> int:
    """The largest entry of a ballot: all votes of a teacher, and the width of the share's range.

    Where the question is a number, `votes` is what the votes add up to at the most.
    """
    table = sampling_table(noise)
    return votes + table.highest - table.lowest


@functools.lru_cache(maxsize=64)
def _certificate(noise: Noise, promise: Promise, trust: Trust) -> Certificate:
    return issue_certificate(noise, promise, trust, calibration="exact")


def _columns(task: Task) -> tuple[Column, ...]:
    if not task.column_types:
        return as_columns(task.features)
    pairs = zip(task.features, task.column_types, strict=True)
    return tuple(Column(name=name, type=type_) for name, type_ in pairs)


def _ring(task: Task, terms: MaskTerms) -> Parameters:
    return Parameters(
        teachers=len(task.teachers),
        colluders=task.colluders,
        dropouts=task.dropouts,
        degree=terms.degree,
        modulus_bits=terms.modulus_bits,
        slot_bits=terms.slot_bits,
        slots_per_coefficient=terms.slots_per_coefficient,
    )


@functools.lru_cache(maxsize=64)
def _check(task: Task) -> None:
    _require_name("the task's name", task.name)
    _require_name("the data id", task.data_id)
    _require_distinct("class names", task.class_names)
    task.question.change(len(task.class_names))
    if task.abstain_below is not None and task.question.kind != "choice":
        raise TaskError(f"a question of {task.question.kind} has no abstentions")
    _require_distinct("features", task.features)
    require_types(task.column_types, len(task.features))
    _require_distinct("teachers' names", [teacher.name for teacher in task.teachers])
    keys = [task.aggregator_key, *(teacher.signing_key for teacher in task.teachers)]
    _require_distinct("signing keys", [key.hex() for key in keys])
    _require_distinct("row keys", [teacher.row_key.hex() for teacher in task.teachers])
    if len(task.aggregator_key) != _SIGNING_KEY_BYTES:
        raise TaskError("the aggregator's signing key is not an Ed25519 key of 32 bytes")
    if len(task.key_id) != HASH_BYTES:
        raise TaskError("a key id has 32 bytes")
    if task.succeeds is not None and len(task.succeeds) != HASH_BYTES:
        raise TaskError("the id of the task that is succeeded has 32 bytes")
    require_unit(task.unit, task.votes)
    if task.masks is None:
        _check_key(task)
    else:
        _check_masks(task, task.masks)
    _check_noise(task)
    if task.masks is None:
        task.ciphertexts_for(1)  # refuses a plaintext that is too short for one count


def _check_key(task: Task) -> None:
    if not 1 <= task.s <= LARGEST_S or task.plaintext_bits > LARGEST_S * LONGEST_MODULUS_BITS:
        raise TaskError(f"no key has s = {task.s} and plaintexts of {task.plaintext_bits} bits")


def _check_masks(task: Task, terms: MaskTerms) -> None:
    """The ring hides what it says, and holds the largest sum; everybody works that out anew."""
    if (task.key_id, task.s, task.plaintext_bits) != (bytes(HASH_BYTES), 0, 0):
        raise TaskError("a task is either under masks or has a key, never both")
    found = _ring(task, terms).security_after_loss
    if terms.security_bits != found:
        raise TaskError(
            f"the task says that its masks leave {terms.security_bits} bits of security, and it is "
            f"{found}"
        )
    largest_sum = len(task.teachers) * task.entry_bound
    if largest_sum.bit_length() > terms.slot_bits:
        raise TaskError(f"slots of {terms.slot_bits} bits do not hold sums up to {largest_sum}")
    if not SHORTEST_EPOCH_SECONDS <= terms.epoch_seconds <= LONGEST_EPOCH_SECONDS:
        raise TaskError(
            f"an epoch lasts {SHORTEST_EPOCH_SECONDS} to {LONGEST_EPOCH_SECONDS} seconds"
        )


def _check_noise(task: Task) -> None:
    noise = task.noise
    if noise.shares != task.trust.honest_shares:
        raise TaskError(
            f"the noise is that of {noise.shares} shares, but only {task.trust.honest_shares} are "
            "sure to be honest",
            hint="calibrate for the task's colluders and dropouts",
        )
    _require_bearable(task, noise)
    bound = entry_bound(noise, votes=max(task.votes) * task.question.largest_entry)
    if task.entry_bound != bound:
        raise TaskError(f"a ballot's entries reach {bound}, not {task.entry_bound}")
    if not noise.has_equal_shares:
        raise TaskError(
            "the tosses do not divide into equal shares",
            hint="calibrate anew",
        )
    few = replace(task.promise, queries=min(task.queries, _FEW_QUERIES))
    for promise in (few, task.promise):  # too little for a few is found sooner than for all
        _require_certified(_certificate(noise, promise, task.trust))


def _require_bearable(task: Task, noise: Noise) -> None:
    """Tasks come from others: refuse what would take us forever, before it does."""
    if task.queries > MOST_TASK_QUERIES:
        raise TaskError(
            f"a task has at most {MOST_TASK_QUERIES:,} queries, not {task.queries:,}",
            hint="split it",
        )
    require_narrow(noise, _LONGEST_REACH)
    require_narrow(noise.one_share(), _LONGEST_SHARE_REACH)


def _require_certified(certificate: Certificate) -> None:
    if not certificate.certified:
        raise TaskError(
            f"the noise is not certified: delta is {certificate.exact_delta:.3g}, promised "
            f"{certificate.promise.delta:.3g}",
            hint="calibrate it with --calibration exact",
        )


def _require_name(what: str, value: str) -> None:
    if not 0 < len(value) <= _LONGEST_NAME or not value.isprintable():
        raise TaskError(f"{what} must be 1 to {_LONGEST_NAME} printable characters")


def _require_row_key(name: str, key: bytes) -> None:
    """A point of low order would give the same rows to everybody."""
    try:
        is_weak = decode_u(key) in LOW_ORDER_U
    except GroupElementError as error:
        raise TaskError(
            f"the row key of {name} is not an X25519 key: {message_of(error)}"
        ) from None
    if is_weak:
        raise TaskError(f"the row key of {name} is of low order, so it would hide nothing")


def _require_distinct(what: str, values: Sequence[str]) -> None:
    for value in values:
        _require_name(f"each of the {what}", value)
    if not values or len(set(values)) != len(values):
        raise TaskError(f"{what} must be there and all different", hint="name each of them, once")
