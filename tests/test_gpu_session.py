"""A session on a machine with a GPU: rows survive what kills it, and nothing is run twice."""

import json
import subprocess
import sys
import zipfile

import pytest

from benchmarks.gpu_session import __main__ as session
from benchmarks.gpu_session import packages
from benchmarks.gpu_session.parts import PARTS, Part
from tests.conftest import ROOT

WRITE = (
    "import json, pathlib, sys, time; "
    "pathlib.Path(sys.argv[1], 'found.json').write_text(json.dumps({'rows': 1})); "
    "print('measured', flush=True); time.sleep(float(sys.argv[2])); sys.exit(int(sys.argv[3]))"
)


def make_part(name, seconds=0, code=0, limit=60.0, **more):
    command = ("-c", WRITE, "OUT", str(seconds), str(code))
    return Part(name, command, command, limit, least=1.0, **more)


def make_session(tmp_path, seconds=60.0, trial=False):
    until = session.time.monotonic() + seconds
    return session.Session(tmp_path, until, trial=trial, data=None)


def read(tmp_path):
    return session.read_rows([tmp_path / session.LOG])


def test_every_part_has_a_row_with_its_records(tmp_path):
    code = session.run_parts(make_session(tmp_path), [make_part("a"), make_part("b", code=5)])
    rows = read(tmp_path)
    assert code == 1
    assert [(row["part"], row["exit_code"]) for row in rows] == [("a", 0), ("b", 5)]
    assert all(row["records"] == {"found.json": {"rows": 1}} for row in rows)
    assert "measured" in rows[0]["output"]
    assert not (tmp_path / session.RUNNING).exists()


def test_a_part_that_takes_too_long_is_ended_and_keeps_its_records(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "SNAPSHOT_SECONDS", 0.5)
    seen = []
    real = session.read_so_far

    def look(*args):
        seen.append(real(*args))
        return seen[-1]

    monkeypatch.setattr(session, "read_so_far", look)
    code = session.run_parts(make_session(tmp_path), [make_part("slow", seconds=600, limit=8.0)])
    (row,) = read(tmp_path)
    assert code == 1
    assert row["timed_out"]
    assert row["records"] == {"found.json": {"rows": 1}}
    assert len(seen) > 2  # while it ran, too


def test_what_does_not_fit_is_left_for_the_next_call(tmp_path, monkeypatch):
    parts = [make_part("a"), make_part("b", code=1), make_part("c")]
    monkeypatch.setattr(session, "PARTS", parts)
    assert session.run_parts(make_session(tmp_path, seconds=0.5), parts[2:]) == 3
    session.run_parts(make_session(tmp_path), parts[:2])
    left = session.choose_parts([], [tmp_path / session.LOG])
    assert [part.name for part in left] == ["b", "c"]


def test_a_part_without_its_data_or_program_is_not_started(tmp_path, capsys):
    parts = [make_part("a", data="images.npz"), make_part("b", program="no-such-program")]
    assert session.run_parts(make_session(tmp_path), parts) == 3
    printed = capsys.readouterr().out
    assert "needs images.npz in the folder that --data names" in printed
    assert "needs no-such-program" in printed


def test_records_are_unpacked_only_where_a_part_ended_well(tmp_path, capsys):
    into = tmp_path / "results"
    into.mkdir()
    session.run_parts(make_session(tmp_path), [make_part("b", code=1)])
    session.run_parts(make_session(tmp_path, trial=True), [make_part("a")])
    session.unpack([tmp_path / session.LOG], into, partial=False)
    assert list(into.iterdir()) == []
    session.unpack([tmp_path / session.LOG], into, partial=True)
    assert json.loads((into / "found.json").read_text()) == {"rows": 1}
    assert "a: left out, a trial" in capsys.readouterr().out


def test_missing_packages_are_named_before_anything_is_imported(tmp_path):
    """Without site-packages there is nothing but the standard library."""
    command = [sys.executable, "-S", "-m", "benchmarks.gpu_session", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pydantic" in done.stderr
    assert "pip download --only-binary=:all:" in done.stderr
    assert not (tmp_path / session.LOG).exists()


def test_wheels_are_unpacked_and_seen(tmp_path, monkeypatch):
    wheels, to = tmp_path / "wheels", tmp_path / "to"
    wheels.mkdir()
    with zipfile.ZipFile(wheels / "brought-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("brought.py", "")
        wheel.writestr("brought-1.0.dist-info/METADATA", "Name: brought\nVersion: 1.0\n")
    assert packages.list_missing(["brought"]) == ["brought"]
    packages.unpack_wheels(wheels, to)
    monkeypatch.syspath_prepend(str(to))
    assert packages.list_missing(["brought"]) == []
    with pytest.raises(SystemExit, match=r"expected files \*.whl"):
        packages.unpack_wheels(to, to)


def test_parts_have_names_of_their_own_and_programs_that_exist():
    assert len({part.name for part in PARTS}) == len(PARTS)
    for part in PARTS:
        for command in (part.command, part.trial):
            if command[0] == "-m" and command[1].startswith("benchmarks"):
                module = ROOT / command[1].replace(".", "/")
                assert module.with_suffix(".py").exists() or (module / "__main__.py").exists()
        assert part.least <= part.limit <= 570.0
    with pytest.raises(SystemExit, match="expected --only portable-check"):
        session.choose_parts(["nothing"], [])
