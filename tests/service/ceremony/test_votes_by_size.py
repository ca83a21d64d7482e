"""A teacher with fewer records has fewer votes: from what each says when it joins."""

import json
from pathlib import Path

import pytest
from tests.cli.commands import json_of, run_dppp
from tests.service.ceremony.ceremonies import AGGREGATOR, BROKER, TEACHERS, terms

from dppp.errors import FederationError
from dppp.protocol.task import Task
from dppp.service.ceremony.assembling import make_federation_file
from dppp.service.ceremony.coordinator import collect, init_federation
from dppp.service.ceremony.home import Home, make_home
from dppp.service.ceremony.identity import Role
from dppp.service.ceremony.join_request import JoinRequest
from dppp.service.ceremony.renewal import request_renewal
from dppp.service.ceremony.terms import Terms, read_terms


def hold(root: Path, records: dict[str, int | None], **other: object) -> Task:
    """A federation whose teachers say that they have so many records."""
    usual: dict[str, object] = {"cryptosystem": "masks", "epsilon": 1.0, "votes": "auto"}
    init_federation(root / "coordinator", terms(**{**usual, **other}))
    requests = [make_home(root / name, name=name, records=of) for name, of in records.items()]
    requests.append(make_home(root / AGGREGATOR, name=AGGREGATOR, role=Role.AGGREGATOR))
    requests.append(make_home(root / BROKER, name=BROKER, role=Role.BROKER, hosts=["localhost"]))
    collect(root / "coordinator", requests)
    return make_federation_file(root / "coordinator", root / "made").task


SIZES: dict[str, int | None] = dict(zip(TEACHERS, (100_000, 700, 20), strict=True))


def test_votes_go_by_the_noise_and_by_the_records_of_each(tmp_path: Path) -> None:
    """Fifteen records for each of the classes in a shard, and what the noise asks at the most."""
    task = hold(tmp_path, SIZES)
    large, middle, small = task.votes
    assert middle == 700 // (15 * len(task.class_names))
    assert small == 1
    assert large > middle
    assert task.unit == "record"
    assert hold(tmp_path / "more", {**SIZES, TEACHERS[0]: 10**9}).votes[0] == large


def test_votes_of_single_teachers_go_before_the_rule(tmp_path: Path) -> None:
    sizes = {**SIZES, TEACHERS[2]: None}
    assert hold(tmp_path, sizes, votes_of={TEACHERS[2]: 3}).votes[2] == 3


def test_a_teacher_that_did_not_say_how_many_records_it_has_is_named(tmp_path: Path) -> None:
    with pytest.raises(FederationError, match=rf"{TEACHERS[1]} did not say.*\nhint: .*--records"):
        hold(tmp_path, {**SIZES, TEACHERS[1]: None})


def test_with_the_unit_teacher_everybody_has_one_vote(tmp_path: Path) -> None:
    assert hold(tmp_path, SIZES, unit="teacher").votes == (1, 1, 1)


def test_the_number_of_records_is_signed(tmp_path: Path) -> None:
    request = make_home(tmp_path / "home", name="one", records=500)
    assert JoinRequest.from_bytes(request.to_bytes()).records == 500
    plain = json.loads(request.to_bytes())
    for false in (501, None):
        data = (json.dumps({**plain, "records": false}, indent=2) + "\n").encode()
        with pytest.raises(FederationError, match="not signed by its own key"):
            JoinRequest.from_bytes(data)
    for strange in (True, "500", 5.0, 0, -1):
        data = (json.dumps({**plain, "records": strange}, indent=2) + "\n").encode()
        with pytest.raises(FederationError, match="records"):
            JoinRequest.from_bytes(data)


def test_only_a_teacher_has_records(tmp_path: Path) -> None:
    with pytest.raises(FederationError, match="only a teacher"):
        make_home(tmp_path / "home", name="one", role=Role.AGGREGATOR, records=5)


def test_a_renewal_says_the_same_number(tmp_path: Path) -> None:
    make_home(tmp_path / "home", name="one", records=500)
    assert request_renewal(Home(folder=tmp_path / "home")).records == 500


def test_terms_with_votes_by_size_survive_their_file(tmp_path: Path) -> None:
    init_federation(tmp_path / "coordinator", terms(votes="auto"))
    found: Terms = read_terms(tmp_path / "coordinator")
    assert found.votes == "auto"


def test_typed_it_is_join_with_records_and_init_with_auto(tmp_path: Path) -> None:
    said = json_of(
        f"init {tmp_path}/coordinator --name cells --data-id cells --class yes --class no "
        "--feature radius --epsilon 1 --delta 1e-5 --queries 50 --votes auto --unit person"
    )
    assert (said["votes"], said["unit"]) == ("auto", "person")
    files = []
    for name, records in SIZES.items():
        joined = json_of(f"join '{tmp_path}/{name}' --name '{name}' --records {records}")
        assert joined["records"] == records
        files.append(f"'{joined['request_file']}'")
    for role, more in (("aggregator", ""), ("broker", "--host localhost")):
        joined = json_of(f"join {tmp_path}/{role} --name {role} --role {role} {more}")
        files.append(joined["request_file"])
    made = json_of(f"collect {tmp_path}/coordinator {' '.join(files)} --out {tmp_path}/made")
    assert made["votes"][1:] == [700 // 30, 1]
    assert made["unit"] == "person"
    shown = run_dppp(f"federation {tmp_path}/made/federation.json").stdout
    assert f"{TEACHERS[2]}, 1 vote\n" in shown
    assert f"{TEACHERS[1]}, 23 votes\n" in shown
    assert "person: all records of one person at one teacher" in shown
    certificate = json_of(f"federation {tmp_path}/made/federation.json")["certificate"]
    assert certificate["votes"] == made["votes"]
