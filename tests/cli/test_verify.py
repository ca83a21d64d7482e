from pathlib import Path

from tests.cli.commands import assert_refused, run_dppp
from tests.protocol.small import federation, rows, small

from dppp.federation import create_federation
from dppp.privacy.calibration import calibrate


def test_a_transcript_of_a_real_key_verifies_and_a_flipped_bit_does_not(tmp_path: Path) -> None:
    certificate = calibrate("skellam", epsilon=8, delta=1e-4, teachers=3, queries=4, classes=2)
    parties = create_federation(
        name="two of three",
        class_names=["no", "yes"],
        features=["only"],
        certificate=certificate,
        models=[lambda inputs: [1] * len(inputs)] * 3,
        s=1,
    )
    released = federation(parties).ask([[0.5], [1.5]]).transcript
    assert released is not None
    transcript = released.to_bytes()
    path = tmp_path / "transcript"
    path.write_bytes(transcript)
    shown = run_dppp(f"verify {path}")
    assert shown.returncode == 0, shown.stderr
    assert "3 of 3 teachers voted on 2 queries" in shown.stdout
    assert "can make up its teachers" in shown.stdout
    known = parties.task.task_id.hex()
    expected = run_dppp(f"verify {path} --task {known}")
    assert known in expected.stdout
    assert "make up" not in expected.stdout
    assert_refused(1, "other teachers", run_dppp(f"verify {path} --task {'ab' * 32}"))
    assert_refused(2, "64 hexadecimal", run_dppp(f"verify {path} --task {known[:-1]}"))
    as_json = run_dppp(f"verify {path} --json")
    assert '"verified": true' in as_json.stdout
    changed = bytearray(transcript)
    changed[len(changed) // 2] ^= 1
    path.write_bytes(bytes(changed))
    assert_refused(1, "check of the", run_dppp(f"verify {path}"))


def test_files_that_are_none_are_refused(tmp_path: Path) -> None:
    assert_refused(2, "cannot read", run_dppp(f"verify {tmp_path / 'missing'}"))
    path = tmp_path / "short"
    released = federation(small()).ask(rows(1)).transcript
    assert released is not None
    path.write_bytes(released.to_bytes())
    assert_refused(1, "check of the key", run_dppp(f"verify {path}"))
