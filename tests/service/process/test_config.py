"""Configurations: what is not known is refused, by file, key and expectation."""

from pathlib import Path
from typing import Any

import pytest

from dppp.errors import InputError
from dppp.service.ceremony.terms import Terms, make_terms, read_terms
from dppp.service.process.config import (
    AggregatorConfig,
    CallableModel,
    HttpModel,
    OnnxModel,
    PickleModel,
    SkopsModel,
    TeacherConfig,
    TorchModel,
    read_config,
    split_address,
)

PARTY = f"""
home = "."
federation = "federation.json"
federation_hash = "{"ab" * 32}"
[broker]
servers = ["tls://nats.example.org:4222"]
"""
TEACHER = (
    PARTY
    + """
[ledger]
path = "ledger.db"
head = "/other/disk/head.json"
[data]
id = "breast 2026"
epsilon = 8
delta = 1e-5
"""
)
MODEL = '[model]\nkind = "onnx"\npath = "m.onnx"\n'
AGGREGATOR = PARTY + '[store]\npath = "batches.db"\n'


def read(tmp_path: Path, text: str, model: Any = TeacherConfig) -> Any:
    path = tmp_path / "party.toml"
    path.write_text(text, encoding="utf-8")
    return read_config(path, model)


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    config = read(tmp_path, TEACHER + MODEL)
    assert config.home == tmp_path
    assert config.ledger.path == tmp_path / "ledger.db"
    assert config.ledger.head == Path("/other/disk/head.json")
    assert config.model.path == tmp_path / "m.onnx"
    assert config.data.epsilon == 8.0
    assert config.monitoring.listen is None


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ('kind = "skops"\npath = "m"\ntrusted_types = ["a.B"]', SkopsModel),
        ('kind = "onnx"\npath = "m"', OnnxModel),
        ('kind = "torch"\npath = "m"\nclass = "a.b:C"\narguments = {width = 3}', TorchModel),
        ('kind = "callable"\nimport = "a.b:predict"', CallableModel),
        ('kind = "http"\nurl = "http://127.0.0.1:9/p"\ntimeout_seconds = 2', HttpModel),
        ('kind = "pickle"\npath = "m"', PickleModel),
    ],
)
def test_a_model_is_of_one_kind(tmp_path: Path, table: str, kind: type) -> None:
    config = read(tmp_path, TEACHER + "[model]\n" + table)
    assert isinstance(config.model, kind)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TEACHER, "model is missing"),
        (TEACHER + MODEL + "more = 1", "model.onnx.more is not known"),
        ("more = 1\n" + TEACHER + MODEL, "more is not known"),
        (TEACHER.replace("epsilon = 8", 'epsilon = "8"') + MODEL, "data.epsilon"),
        (TEACHER.replace("epsilon = 8", "epsilon = inf") + MODEL, "data.epsilon"),
        (TEACHER.replace("epsilon = 8", "epsilon = -1") + MODEL, "greater than 0"),
        (TEACHER.replace("delta = 1e-5", "delta = 1") + MODEL, "less than 1"),
        (TEACHER.replace("delta = 1e-5", "") + MODEL, "data.delta is missing"),
        (TEACHER.replace("ab", "zz") + MODEL, "federation_hash"),
        (TEACHER.replace("tls://", "http://") + MODEL, "tls://nats.example.org"),
        (TEACHER.replace('["tls://nats.example.org:4222"]', "[]") + MODEL, "broker.servers"),
        (TEACHER.replace('path = "ledger.db"', "") + MODEL, "either path"),
        (TEACHER.replace('path = "ledger.db"', 'path = "a"\nurl = "b"') + MODEL, "either path"),
        (TEACHER.replace('path = "ledger.db"', 'url = "env:NO_SUCH"') + MODEL, "NO_SUCH"),
        (TEACHER.replace('path = "ledger.db"', 'url = "file:no"') + MODEL, "cannot read"),
        (TEACHER + '[model]\nkind = "magic"', "skops"),
        (TEACHER + '[model]\nkind = "callable"\nimport = "os.system"', "model.callable.import"),
        (TEACHER + '[model]\nkind = "http"\nurl = "file:///etc"', "model.http.url"),
        (TEACHER + MODEL + '[monitoring]\nlisten = "9101"', "127.0.0.1:9101"),
        (TEACHER + '[model]\nkind = "http"\nurl = "http://[::1/p"', "model.http.url"),
        (TEACHER + MODEL + "[data]", "not TOML"),
        ("home = 1979-05-27", "not TOML that can be used"),
        ("\x00", "not TOML"),
    ],
)
def test_a_bad_configuration_is_one_line_that_names_file_and_key(
    tmp_path: Path, text: str, says: str
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "party.toml") in str(caught.value)
    assert "\n" not in caught.value.one_line


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        read_config(tmp_path / "none.toml", TeacherConfig)


@pytest.mark.parametrize("where", ["env", "file"])
def test_secrets_are_elsewhere_and_never_shown(
    tmp_path: Path, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "postgresql://dppp:hunter2@db/dppp"  # noqa: S105 - a test's
    monkeypatch.setenv("DPPP_STORE_URL", secret)
    (tmp_path / "url").write_text(secret + "\n")
    place = "env:DPPP_STORE_URL" if where == "env" else "file:url"
    config = read(tmp_path, PARTY + f'[store]\nurl = "{place}"\n', AggregatorConfig)
    assert config.store.url.get_secret_value() == secret
    assert "hunter2" not in repr(config) + str(config)


def test_an_error_does_not_show_the_value(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(
            tmp_path, AGGREGATOR.replace('path = "b', 'url = 1\npath = "hunter2'), AggregatorConfig
        )
    assert "hunter2" not in str(caught.value)


def test_an_aggregator_has_sensible_defaults(tmp_path: Path) -> None:
    config = read(tmp_path, AGGREGATOR, AggregatorConfig)
    assert config.gateway.listen == "127.0.0.1:8080"
    assert (config.gateway.most_rows, config.gateway.page) == (20_000, True)
    assert config.patience.to_patience().opening == 60
    assert config.queriers == ()


def test_queriers_are_told_apart_and_tls_needs_both_files(tmp_path: Path) -> None:
    querier = f'[[queriers]]\nname = "clinic"\ntoken_sha256 = "{"cd" * 32}"\nqueries = 5\n'
    (one,) = read(tmp_path, AGGREGATOR + querier, AggregatorConfig).queriers
    assert (one.name, one.queries, one.transcripts) == ("clinic", 5, False)
    (auditor,) = read(
        tmp_path, AGGREGATOR + querier + "transcripts = true\n", AggregatorConfig
    ).queriers
    assert auditor.transcripts is True
    for word in ("1", '"true"', '"yes"'):
        with pytest.raises(InputError, match=r"queriers.0.transcripts"):
            read(tmp_path, AGGREGATOR + querier + f"transcripts = {word}\n", AggregatorConfig)
    with pytest.raises(InputError, match="same name"):
        read(tmp_path, AGGREGATOR + querier * 2, AggregatorConfig)
    with pytest.raises(InputError, match="same token"):
        read(tmp_path, AGGREGATOR + querier + querier.replace("clinic", "b"), AggregatorConfig)
    with pytest.raises(InputError, match="or neither"):
        read(tmp_path, AGGREGATOR + '[gateway]\ntls_key = "k"', AggregatorConfig)


@pytest.mark.parametrize(
    "allowance",
    ["", "queries = 0", "queries = -1", 'queries = "unlimited"', "queries = true", "queries = 1.5"],
    ids=["none", "zero", "negative", "unlimited", "a truth", "a part"],
)
def test_a_querier_without_an_allowance_is_refused_with_what_to_write(
    tmp_path: Path, allowance: str
) -> None:
    querier = f'[[queriers]]\nname = "clinic"\ntoken_sha256 = "{"cd" * 32}"\n{allowance}\n'
    with pytest.raises(InputError, match=r"queriers.0: .* as queries = 500 .* no unlimited"):
        read(tmp_path, AGGREGATOR + querier, AggregatorConfig)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.0.0.1", "gateway.example.org"])  # noqa: S104
def test_in_the_clear_a_gateway_is_for_this_machine_only(tmp_path: Path, host: str) -> None:
    table = f'[gateway]\nlisten = "{host}:8080"\n'
    with pytest.raises(InputError, match="in the clear; give tls_certificate and tls_key"):
        read(tmp_path, AGGREGATOR + table, AggregatorConfig)
    keys = 'tls_certificate = "c"\ntls_key = "k"\n'
    for more in (keys, "behind_proxy = true\n"):
        assert read(tmp_path, AGGREGATOR + table + more, AggregatorConfig).gateway.listen
    for here in ("127.0.0.1", "127.1.2.3", "[::1]", "localhost"):
        read(tmp_path, AGGREGATOR + table.replace(host, here), AggregatorConfig)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.1.2.3", "intranet"])  # noqa: S104
@pytest.mark.parametrize(
    ("party", "model"), [(TEACHER + MODEL, TeacherConfig), (AGGREGATOR, AggregatorConfig)]
)
def test_monitoring_is_for_this_machine_unless_a_word_says_otherwise(
    tmp_path: Path, party: str, model: type, host: str
) -> None:
    table = f'[monitoring]\nlisten = "{host}:9101"\n'
    for said in ("", "expose = false\n"):
        with pytest.raises(InputError, match="or add expose = true"):
            read(tmp_path, party + table + said, model)
    assert read(tmp_path, party + table + "expose = true\n", model).monitoring.listen
    for here in ("127.0.0.1", "[::1]", "localhost"):
        assert read(tmp_path, party + table.replace(host, here), model).monitoring.listen


@pytest.mark.parametrize(
    "where", ["intranet", "10.1.2.3:80", "[fe80::1]", "user@intranet", "127.0.0.1.intranet"]
)
def test_a_model_on_another_machine_is_asked_over_https(tmp_path: Path, where: str) -> None:
    table = f'[model]\nkind = "http"\nurl = "http://{where}/predict"'
    with pytest.raises(InputError, match=r"model\.http\.url: .*in the clear; write https://"):
        read(tmp_path, TEACHER + table)
    if "@" not in where:
        assert read(tmp_path, TEACHER + table.replace("http://", "https://")).model.url
    for here in ("127.0.0.1", "127.1.2.3:8000", "[::1]:8000", "localhost"):
        assert read(tmp_path, TEACHER + table.replace(where, here)).model.url


@pytest.mark.parametrize(
    "where",
    [
        "[::1].evil.org",
        "127.0.0.1:80:90",
        "me@127.0.0.1",
        "127.0.0.1:port",
        "[::1",
        "",
        "127.0.0.1/ ",
    ],
)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_model_url_that_can_be_read_in_two_ways_is_refused(
    tmp_path: Path, scheme: str, where: str
) -> None:
    table = f'[model]\nkind = "http"\nurl = "{scheme}://{where}/predict"'
    with pytest.raises(InputError, match=r"model\.http\.url"):
        read(tmp_path, TEACHER + table)


def test_addresses_have_a_host_and_a_port() -> None:
    assert split_address("0.0.0.0:4222") == ("0.0.0.0", 4222)  # noqa: S104 - only read
    assert split_address("[::1]:80") == ("::1", 80)
    for bad in ("4222", ":4222", "a:", "a:b", "a:70000", "a:-1", "a:²"):
        with pytest.raises(InputError, match="not an address"):
            split_address(bad)


@pytest.mark.parametrize(
    "of_cryptosystem",
    [
        {},
        {"labels_per_batch": 50, "epoch_seconds": 3600},
        {"cryptosystem": "paillier"},
        {"cryptosystem": "paillier", "modulus_bits": 3072, "s": 2},
    ],
)
def test_terms_survive_their_file(of_cryptosystem: dict[str, Any], tmp_path: Path) -> None:
    terms = make_terms(
        **of_cryptosystem,
        name='a "quoted" näme \\ 😀',
        data_id="d",
        class_names=("ja", "nein"),
        features=("x", "y"),
        epsilon=0.1,
        delta=1e-12,
        queries=3,
        dropouts=0,
    )
    (tmp_path / "terms.toml").write_text(terms.to_toml(), encoding="utf-8")
    assert read_terms(tmp_path) == terms
    said = of_cryptosystem.get("cryptosystem", "masks")
    assert f'cryptosystem = "{said}"' in terms.to_toml()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"class_names": ("one",)}, "at least two names"),
        ({"class_names": ("one",), "low": 0.0}, "both bounds"),
        ({"class_names": ("one",), "low": 1.0, "high": 1.0}, "lower one first"),
        ({"class_names": ("one", "two"), "low": 0.0, "high": 1.0}, "one name"),
        ({"max_labels": 3}, "1 to the number of labels"),
        ({"label_share": 0.5}, "labels need max_labels"),
        ({"max_labels": 1, "levels": 5}, "not of both"),
        ({"max_labels": 1, "abstain_below": 2}, "abstentions"),
        ({"class_names": ("one", "one")}, "once only"),
        ({"features": ()}, "features"),
        ({"name": "a\nb"}, "printable"),
        ({"epsilon": 0.0}, "greater than 0"),
        ({"delta": 1.0}, "less than 1"),
        ({"queries": 0}, "queries"),
        ({"noise": "laplace"}, "noise"),
        ({"s": 9, "cryptosystem": "paillier"}, "s is 9"),
        ({"modulus_bits": 512, "cryptosystem": "paillier"}, "modulus"),
        ({"s": 1}, "masks has no s"),
        ({"modulus_bits": 2048}, "masks has no modulus_bits"),
        ({"epoch_seconds": 3600, "cryptosystem": "paillier"}, "paillier has no epoch_seconds"),
        ({"labels_per_batch": 5, "cryptosystem": "paillier"}, "paillier has no labels_per_batch"),
        ({"epoch_seconds": 59}, "epoch_seconds"),
        ({"labels_per_batch": 0}, "labels_per_batch"),
        ({"cryptosystem": "rot13"}, "cryptosystem"),
        ({"colluders": -1}, "colluders"),
        ({"more": 1}, "not known"),
    ],
)
def test_terms_that_cannot_be_are_refused(change: dict[str, Any], says: str) -> None:
    good: dict[str, Any] = {
        "name": "n",
        "data_id": "d",
        "class_names": ("a", "b"),
        "features": ("x",),
        "epsilon": 1.0,
        "delta": 1e-5,
        "queries": 1,
    }
    assert isinstance(make_terms(**good), Terms)
    with pytest.raises(InputError, match=says):
        make_terms(**{**good, **change})
