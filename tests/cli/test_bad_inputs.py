"""What people type wrongly: one line that says what is wrong, a hint, the right code, no crash.

Every row is a command, the code that it must end with, and a word of what it must say. `{…}` are
files that are made below.
"""

import json
from pathlib import Path

import pytest
from tests.cli.commands import run_dppp

CALIBRATE = "calibrate --epsilon 1 --delta 1e-5 --teachers 20"
SIMULATE = "simulate --label kind --teachers 3 --queries 5 --no-cryptography --data"
INIT = (
    "init {new} --name f --data-id d --class a --class b --epsilon 1 --delta 1e-5 --queries 9 "
    "--feature x"
)

FILES = {
    "good.csv": "x,kind\n" + "".join(f"{place % 7},{'ab'[place % 2]}\n" for place in range(60)),
    "empty.csv": "",
    "header.csv": "x,kind\n",
    "twice.csv": "x,x,kind\n1,2,a\n",
    "ragged.csv": "x,kind\n1,a\n2\n",
    "one-class.csv": "x,kind\n1,a\n2,a\n3,a\n",
    "no-label.csv": "x,kind\n1,\n2,\n",
    "only-label.csv": "kind\na\nb\n",
    "amounts.csv": "x,kind\n" + "".join(f"{place},{place * 1.1:.2f}\n" for place in range(60)),
    "comment.csv": "# from the ward\nx,kind\n1,a\n2,b\n",
    "nothing.csv": "x,kind\n" + "NA,a\nNA,b\n" * 30,
    "quotes.csv": 'x,kind\n"1,a\n2,b\n',
    "huge.csv": "x,kind\n" + "".join(f"{place}e306,{'ab'[place % 2]}\n" for place in range(60)),
    "token.txt": "abcdefgh12345678abcdefgh12345678\n",
    "note.txt": "nothing of interest\n",
    "list.json": "[1, 2]",
    "half.json": '{"noise": "skellam"}',
    "bare.toml": "role = 1\n",
    "broken.toml": "[[[",
}
BYTES = {"latin.csv": "größe,kind\n1,a\n".encode("latin-1"), "binary.csv": b"\x00\xff\xfe" * 30}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("bad")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for name, data in BYTES.items():
        (folder / name).write_bytes(data)
    (folder / "full").mkdir()
    (folder / "full" / "note.txt").write_text("there already")
    made = {name.replace(".", "_").replace("-", "_"): str(folder / name) for name in FILES | BYTES}
    return made | {
        "folder": str(folder),
        "none": str(folder / "none.csv"),
        "deep": str(folder / "missing" / "file.png"),
        "full": str(folder / "full"),
        "new": str(folder / "new"),
    }


COMMANDS = [
    # options that are missing, unknown, or of another type
    ("fly", 2, "No such command"),
    ("calibrate", 2, "Missing option"),
    ("calibrate --epsilon 1 --delta 1e-5", 2, "--teachers"),
    (f"{CALIBRATE} --fly", 2, "No such option"),
    ("calibrate --epsilon one --delta 1e-5 --teachers 20", 2, "valid number"),
    ("calibrate --epsilon 1 --delta 1e-5 --teachers 2.5", 2, "valid integer"),
    ("teacher fly", 2, "No such command"),
    ("join {new} --name n --role emperor", 2, "emperor"),
    ("demo --web --port 99999", 2, "--port"),
    ("local up --teachers 1", 2, "--teachers"),
    ("query --gateway http://127.0.0.1:1 --input {good_csv} --out {new} --batch-size 0", 2, "size"),
    # promises that nobody can make
    ("calibrate --epsilon 0 --delta 1e-5 --teachers 20", 2, "epsilon"),
    ("calibrate --epsilon -1 --delta 1e-5 --teachers 20", 2, "epsilon"),
    ("calibrate --epsilon nan --delta 1e-5 --teachers 20", 2, "epsilon"),
    ("calibrate --epsilon inf --delta 1e-5 --teachers 20", 2, "epsilon"),
    ("calibrate --epsilon 1e9 --delta 1e-5 --teachers 20", 2, "epsilon"),
    ("calibrate --epsilon 1 --delta 0 --teachers 20", 2, "delta"),
    ("calibrate --epsilon 1 --delta 1 --teachers 20", 2, "delta"),
    ("calibrate --epsilon 1 --delta 1e-300 --teachers 20", 2, "too small"),
    ("calibrate --epsilon 1e-9 --delta 1e-12 --teachers 20", 2, "too wide"),
    ("calibrate --epsilon 1 --delta 1e-5 --teachers 1", 2, "at least 2"),
    ("calibrate --epsilon 1 --delta 1e-5 --teachers -4", 2, "teachers"),
    (f"{CALIBRATE} --queries 0", 2, "queries"),
    (f"{CALIBRATE} --classes 1", 2, "classes"),
    (f"{CALIBRATE} --colluders -1", 2, "colluders"),
    (f"{CALIBRATE} --colluders 20", 2, "below teachers"),
    (f"{CALIBRATE} --dropouts 11", 2, "threshold"),
    (f"{CALIBRATE} --noise laplace", 2, "unknown noise"),
    (f"{CALIBRATE} --calibration guess", 2, "unknown calibration"),
    (f"{CALIBRATE} --noise polya --calibration paper", 2, "polya"),
    # noise that is not one
    ("certify --noise skellam --epsilon 1", 2, "--variance"),
    ("certify --noise skellam --epsilon 1 --variance 0", 2, "variance"),
    ("certify --noise skellam --epsilon 1 --variance nan", 2, "variance"),
    ("certify --noise skellam --epsilon 1 --variance 1e300", 2, "wide"),
    ("certify --noise skellam --epsilon 1 --variance 9 --ratio 0.5", 2, "--ratio"),
    ("certify --noise polya --epsilon 1 --shape 1 --ratio 1.5", 2, "ratio"),
    ("certify --noise binomial --epsilon 1 --total-tosses 0", 2, "tosses"),
    ("certify --noise skellam --epsilon 1 --variance 9 --honest-shares 0", 2, "honest-shares"),
    ("certify --noise skellam --epsilon 1 --variance 9 --scope all", 2, "scope"),
    ("certify --noise skellam --epsilon 1 --variance 9 --delta 7", 2, "delta"),
    (
        "certify --noise skellam --epsilon 1 --variance 9 --queries 2 --scope single-coordinate",
        2,
        "one query",
    ),
    ("account --delta 1e-5", 2, "no noise"),
    ("account --delta 1e-5 --certificate {none}", 2, "No such file"),
    ("account --delta 1e-5 --certificate {note_txt}", 2, "not a JSON file"),
    ("account --delta 1e-5 --certificate {list_json}", 2, "JSON object"),
    ("account --delta 1e-5 --certificate {half_json}", 2, "how many queries"),
    ("account --delta 1e-5 --certificate {half_json} --noise skellam", 2, "both"),
    # tables
    (SIMULATE + " {none}", 2, "No such file"),
    (SIMULATE + " {folder}", 2, "directory"),
    (SIMULATE + " {empty_csv}", 2, "empty_csv"),
    (SIMULATE + " {header_csv}", 2, "no records"),
    (SIMULATE + " {twice_csv}", 2, "twice"),
    (SIMULATE + " {ragged_csv}", 2, "line 3"),
    (SIMULATE + " {one_class_csv}", 2, "classes"),
    (SIMULATE + " {no_label_csv}", 2, "label"),
    (SIMULATE + " {only_label_csv}", 2, "learn from"),
    (SIMULATE + " {amounts_csv}", 2, "different numbers"),
    (SIMULATE + " {latin_csv}", 2, "UTF-8"),
    (SIMULATE + " {quotes_csv}", 2, "quotes_csv"),
    (SIMULATE + " {huge_csv}", 2, "cannot be"),
    (SIMULATE + " {binary_csv}", 2, "binary_csv"),
    (SIMULATE + " {comment_csv}", 2, "line 2"),
    (SIMULATE + " {nothing_csv}", 2, "learn from"),
    (SIMULATE + " {good_csv} --drop x", 2, "learn from"),
    (SIMULATE + " {good_csv} --person kind", 2, "the label"),
    (SIMULATE + " {good_csv} --votes 1000000", 2, "more than the records"),
    (SIMULATE + " {good_csv} --low 1", 2, "both ends"),
    (SIMULATE + " {good_csv} --max-labels 1", 2, "0 or 1"),
    (SIMULATE + " /dev/null", 2, "no records"),
    (SIMULATE + " {good_csv} --person nobody", 2, "nobody"),
    ("simulate --data {good_csv} --label colour", 2, "colour"),
    ("simulate --data {good_csv} --label kind --teachers 40 --queries 40", 2, "too few"),
    (SIMULATE + " {good_csv} --votes many", 2, "--votes"),
    (SIMULATE + " {good_csv} --votes 0", 2, "--votes"),
    (SIMULATE + " {good_csv} --noise laplace", 2, "unknown noise"),
    (SIMULATE + " {good_csv} --cryptosystem rsa", 2, "cryptosystem"),
    (SIMULATE + " {good_csv} --seed -1", 2, "seed"),
    (SIMULATE + " {good_csv} --queries 0", 2, "--queries"),
    ("simulate --data {good_csv} --label kind --teachers 1", 2, "--teachers"),
    ("train --data {good_csv} --label kind", 2, "where the models go"),
    ("train --data {good_csv} --label kind --out {new} --votes " + "9" * 5000, 2, "--votes"),
    ("train --data {good_csv} --label kind --out {new} --jobs 0", 2, "--jobs"),
    ("train --data {good_csv} --label kind --out {new} --unit planet", 2, "unit"),
    ("plan --teachers 20", 2, "accuracy margin"),
    ("plan --teachers 20 --accuracy-margin 2", 2, "margin"),
    ("plan --teachers 20 --records 100 --curve x", 2, "learning curve"),
    ("plan --data {good_csv} --label kind --teachers 100", 2, "too few"),
    ("plan --data {good_csv} --label kind --teachers 3 --seed -1", 2, "seed"),
    # places to write to
    ("train --data {good_csv} --label kind --out {deep}", 2, "does not exist"),
    ("plan --teachers 20 --accuracy-margin 0.4 --plot {deep}", 2, "does not exist"),
    ("bench --paper --teachers 3 --plot {deep}", 2, "does not exist"),
    ("reproduce skew --out {new} --seed -1", 2, "--seed"),
    ("reproduce overhead --out {new} --teachers 0", 2, "--teachers"),
    (SIMULATE + " {good_csv} --out {deep}", 2, "does not exist"),
    (SIMULATE + " {good_csv} --out {full}", 2, "is a folder"),
    (CALIBRATE + " --plot {deep}", 2, "does not exist"),
    (CALIBRATE + " --plot {note_txt}", 2, "kind of figure"),
    ("demo --quick --out {deep}", 2, "does not exist"),
    ("reproduce accuracy-epsilon --dataset breast-cancer --out {deep}", 2, "does not exist"),
    ("reproduce accuracy-epsilon --dataset iris --out {new}", 2, "unknown dataset"),
    ("aggregator token --name n --queries 5 --out {deep}", 2, "does not exist"),
    ("local up --folder {full}", 2, "not empty"),
    ("local down --folder {new}", 2, "new"),
    # files of other kinds
    ("verify {none}", 2, "No such file"),
    ("verify {note_txt}", 1, "not a message"),
    ("verify {note_txt} --task 12", 2, "64 hexadecimal"),
    ("verify {note_txt} --rows {good_csv}", 2, "--row-key"),
    ("ledger show {none}", 2, "none"),
    ("ledger show {note_txt}", 2, "note"),
    ("ledger check {note_txt} --remembered {none}", 2, "none"),
    ("federation {none}", 2, "No such file"),
    ("federation {list_json}", 2, "list.json"),
    ("keys inspect {note_txt}", 2, "share"),
    ("teacher run --config {none}", 2, "none"),
    ("teacher run --config {broken_toml}", 2, "broken.toml"),
    ("teacher accept --config {bare_toml}", 2, "bare.toml"),
    ("aggregator run --config {bare_toml}", 2, "bare.toml"),
    ("setup {new} --federation {list_json}", 2, "--hash"),
    ("setup {new} --federation {list_json} --hash 12", 2, "hexadecimal"),
    ("collect {new}", 2, "nothing to collect"),
    ("collect {new} {note_txt}", 2, "note.txt"),
    ("keys deal --federation {new} --out {new}", 2, "new"),
    ("renew request {new}", 2, "new"),
    # federations
    (INIT + " --features-from {good_csv}", 2, "twice"),
    (INIT + " --class a", 2, "once only"),
    (INIT + " --cryptosystem rsa", 2, "cryptosystem"),
    (INIT + " --modulus-bits 2048", 2, "modulus_bits"),
    (INIT + " --votes-of Clinic", 2, "votes"),
    (INIT + " --votes-of Clinic=" + "9" * 5000, 2, "votes"),
    (INIT + " --unit planet", 2, "unit"),
    (INIT + " --votes 3 --unit teacher", 2, "unit"),
    # what else is out of reach
    ("query --gateway ftp://host --input {good_csv} --out {new} --token-file {none}", 2, "token"),
    (
        "query --gateway ftp://host --input {good_csv} --out {new} --token-file {token_txt}",
        2,
        "ftp",
    ),
    ("bench --cryptosystem rsa", 2, "cryptosystem"),
    ("bench --teachers 1", 2, "teachers"),
    ("bench --steps", 2, "--paper"),
]


@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
@pytest.mark.parametrize(("command", "code", "word"), COMMANDS)
def test_a_bad_command_says_what_is_wrong_and_what_to_do(
    places: dict[str, str], command: str, code: int, word: str, as_json: bool
) -> None:
    before = sorted(Path(places["folder"]).rglob("*"))
    result = run_dppp(command.format(**places) + (" --json" if as_json else ""))
    assert result.returncode == code, result.stderr
    assert result.stdout == ""
    if as_json:
        said = json.loads(result.stderr)
    else:
        error, hint = result.stderr.splitlines()
        said = {"error": error.removeprefix("dppp: "), "hint": hint.removeprefix("hint: ")}
        assert error != said["error"]
        assert hint != said["hint"]
    assert set(said) == {"error", "hint"}
    assert word.replace("_csv", ".csv") in said["error"]
    assert said["hint"]
    assert len(said["error"]) < 400
    assert "Error" not in said["error"].replace("UnicodeDecodeError", "")
    assert sorted(Path(places["folder"]).rglob("*")) == before, "it made something"


def test_there_are_sixty_of_them() -> None:
    assert len(COMMANDS) >= 60
    assert len({command for command, *_ in COMMANDS}) == len(COMMANDS)
