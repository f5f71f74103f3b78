"""Runs in portable arithmetic: other threads and instructions, one trail; verified elsewhere."""

import copy

import pytest

from benchmarks import elsewhere
from seedless.audit import verification
from seedless.audit.verification import verify
from seedless.core.config import ExecutionConfig, parse_config
from seedless.core.errors import ConfigError, SeedlessError
from seedless.numerics.environment import capture_environment
from seedless.numerics.environment_difference import compare_environments
from seedless.proof.trail import read_trail
from seedless.runs.folder import read_config
from seedless.runs.prepare import configure_execution
from seedless.runs.seal import PROMISES
from seedless.runs.train import train_run
from tests.forgery import forge, read_entries, read_statement, reconfigure
from tests.tiny import answer_here, copy_run, flags_restored

ECG = {
    "data": {"name": "simulated", "records": 60},
    "model": {"name": "conformer", "small": True},
    "loss": {"class_weights": "sqrt", "clamp": 50.0},
    "train": {"clip_norm": 1.0},
}
IMAGES = {
    "data": {"name": "simulated-images", "records": 40, "task": "multi-class"},
    "augment": {"padding": 2, "flip": True},
    "model": {"name": "resnet18", "small": True},
    "train": {"optimizer": "sgd", "rate": 0.05, "momentum": 0.9, "weight_decay": 5e-4},
}
CASES = {"signals": ECG, "images": IMAGES}
# One thread and plain instructions; two threads and whatever the processor has.
WAYS = {"one": (1, {"ATEN_CPU_CAPABILITY": "default"}), "two": (2, {})}


def build(case, arithmetic, **execution):
    """A run of one epoch on the CPU."""
    parts = CASES[case]
    return parse_config(
        {
            **parts,
            "order": {"batch_size": 16},
            "train": {"epochs": 1, "evaluate_every": 1, **parts["train"]},
            "execution": {"device": "cpu", "arithmetic": arithmetic, "threads": 1, **execution},
        }
    )


def train_both_ways(run_python, folder, config):
    """Train one configuration in two processes that compute differently; return what they left."""
    (folder / "run.toml").write_text(config.to_toml())
    for name, (threads, variables) in WAYS.items():
        line = ("-m", "seedless", "train", folder / "run.toml", "--out", folder / name)
        run_python(*map(str, line), "--set", f"execution.threads={threads}", **variables)
    return [
        [{key: entry.get(key) for key in ("state", "loss", "score")} for entry in read_trail(run)]
        + [{key: read_statement(run)["predicate"][key] for key in ("weights", "predictions")}]
        for run in (folder / name for name in WAYS)
    ]


@pytest.mark.parametrize("case", CASES)
def test_threads_and_instructions_do_not_show(case, run_python, tmp_path):
    one, two = train_both_ways(run_python, tmp_path, build(case, "portable"))
    assert one == two
    digests = {read_config(tmp_path / name).digest for name in WAYS}
    assert len(digests) == 1  # nor in the configuration: they decide nothing


def test_negative_control_native_arithmetic_shows_them(run_python, tmp_path):
    one, two = train_both_ways(run_python, tmp_path, build("signals", "native"))
    assert one[0] == two[0]  # the start is exact in any arithmetic
    assert one[1] != two[1]
    assert one[-1] != two[-1]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    with flags_restored():
        return train_run(build("signals", "portable"), tmp_path_factory.mktemp("run") / "run").path


def test_a_run_made_on_a_gpu_is_executed_on_a_cpu(run, tmp_path, monkeypatch):
    # As a GPU would have left it: the bits are the CPU's, and so they must be.
    there = copy_run(run, tmp_path / "there")
    config = read_config(there).change(execution={"device": "cuda", "mode": "graph"})
    (there / "config.toml").write_text(config.to_toml())
    entries = read_entries(there)
    entries[0]["environment"]["devices"] = [{"name": "Some GPU", "capability": "9.0"}]
    entries[0]["environment"]["cpu"]["model"] = "Another CPU"
    forge(there, entries)
    monkeypatch.setattr(verification, "run_worker", answer_here)
    with flags_restored():
        found = verify(there)
    assert found.outcome == "identical", found.details
    assert found.details[0] == "made on Some GPU"
    assert found.details[1].startswith("executed on ")
    assert "1 thread" in found.details[1]


def test_a_stripped_run_is_executed_elsewhere(run, tmp_path, monkeypatch):
    elsewhere.pack(run, tmp_path)
    monkeypatch.setattr(verification, "run_worker", answer_here)
    with flags_restored():
        found = elsewhere.check(tmp_path, "cpu", data=None, only=None)["run"]
    assert found["verdict"]["outcome"] == "identical", found["verdict"]
    assert found["weights"] == read_statement(run)["predicate"]["weights"]
    assert (tmp_path / "run.tar.xz").stat().st_size < 100_000  # no weights, no trail


def test_a_difference_is_not_excused_by_another_processor(run, tmp_path, monkeypatch):
    there = copy_run(run, tmp_path / "there")
    reconfigure(there, read_config(there).change(control={"flip_bit": "stem.0.weight:0:0"}))
    entries = read_entries(there)
    entries[0]["environment"]["cpu"]["model"] = "Another CPU"
    forge(there, entries)
    monkeypatch.setattr(verification, "run_worker", answer_here)
    with flags_restored():
        found = verify(there)
    assert found.outcome == "differs"
    assert found.difference["epoch"] == 1


def test_only_versions_are_decisive():
    here, portable = capture_environment(), ExecutionConfig(arithmetic="portable")
    there = copy.deepcopy(here)
    there["cpu"]["capability"] = "NEON"
    there["machine"] = "aarch64"
    there["devices"] = [{"name": "Some GPU"}]
    assert compare_environments(there, here, portable)[0] == []
    assert compare_environments(there, here, ExecutionConfig(device="cuda"))[0]
    there["packages"]["torch"] = "1.0"
    assert [m.field for m in compare_environments(there, here, portable)[0]] == ["packages.torch"]


def test_a_native_run_stays_on_its_device(tmp_path):
    with flags_restored():
        native = train_run(build("signals", "native"), tmp_path / "run").path
        with pytest.raises(ConfigError, match="native arithmetic, whose bits depend on the device"):
            verify(native, device="cuda")
        with pytest.raises(SeedlessError, match="unknown device 'tpu'"):
            verify(native, device="tpu")


def test_what_is_promised(run):
    promise = read_statement(run)["predicate"]["promise"]
    assert promise["across"] == PROMISES["portable"]
    values = read_statement(run)["predicate"]["config"]["values"]["execution"]
    assert values == {"arithmetic": "portable", "precision": "fp32", "storage": "float32"}


def test_a_native_configuration_keeps_the_digest_it_had_before_there_was_a_choice():
    values = build("signals", "native").identity()["execution"]
    assert "arithmetic" not in values
    assert {"device", "mode", "threads"} <= {*values}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"precision": "bf16"}, "portable arithmetic needs fp32"),
        ({"mode": "compiled"}, "portable arithmetic needs eager or graph"),
        ({"arithmetic": "portabel"}, "did you mean 'portable'"),
    ],
)
def test_what_cannot_be_portable_is_refused(settings, message):
    config = build("signals", **{"arithmetic": "portable", **settings})
    with flags_restored(), pytest.raises(SeedlessError, match=message):
        configure_execution(config)


@pytest.mark.parametrize("clip", [None, 0.5])
def test_parts_of_a_batch_do_not_show(clip, tmp_path):
    """With dropout, class weights, a penalty on features and clipping; the last batch is short."""
    digests = []
    for size in (None, 16, 7):
        config = build("signals", "portable").change(
            model={"name": "conformer"}, train={"microbatch": size, "clip_norm": clip}
        )
        with flags_restored():
            done = train_run(config, tmp_path / f"{size}")
        digests.append((done.digest, [e["state"] for e in read_trail(done.path)]))
    assert digests[0] == digests[1] == digests[2]


def test_negative_control_parts_show_in_native_arithmetic(tmp_path):
    with flags_restored():
        whole, parts = (
            train_run(
                build("signals", "native").change(train={"microbatch": size}), tmp_path / f"{size}"
            ).digest
            for size in (None, 7)
        )
    assert whole != parts


def test_microbatches_are_refused_where_samples_depend_on_each_other(tmp_path):
    config = build("images", "portable").change(train={"microbatch": 8})
    with flags_restored(), pytest.raises(SeedlessError, match="in BatchNorm2d"):
        train_run(config, tmp_path / "run")
