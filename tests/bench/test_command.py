"""The command as a person runs it."""

import json

SMALL = ("--set", "model.small=true", "--set", "execution.threads=1", "--device", "cpu")
QUICK = ("--batch", "8", "--steps", "1", "--rounds", "1", *SMALL)
ONLY = ("--only", "ours eager fp32", "--only", "plain eager", "--only", "plain det")


def test_bench_prints_a_table_a_verdict_and_writes_results(run_python, tmp_path):
    out = tmp_path / "new" / "bench.json"
    done = run_python(
        *("-m", "seedless", "bench", "--model", "baseline", *QUICK, *ONLY, "--out", str(out))
    )
    lines = done.stdout.splitlines()
    assert lines[0].startswith("baseline small, ")
    assert lines[-1].startswith("fp32: ours eager fp32 is ")
    written = json.loads(out.read_bytes())
    assert written["command"].startswith("seedless bench --model baseline --batch 8")
    assert written["environment"]["threads"]["intraop"] == 1
    assert written["results"]["complete"]
    for row in written["results"]["rows"]:
        (line,) = [line for line in lines if line.startswith(row["name"] + "  ")]
        assert row["digest"].removeprefix("sha256:")[:12] in line
    assert "starting plain" in done.stderr


def test_bad_input_ends_in_one_message(run_python, tmp_path):
    done = run_python("-m", "seedless", "bench", "--out", str(tmp_path), check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: cannot write {tmp_path}: name a file with --out")
    done = run_python(
        *("-m", "seedless", "bench", "--concurrent", "2", "--rounds", "3"), check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        "error: --rounds belongs to the comparison of steps, not to --concurrent\n"
    )
