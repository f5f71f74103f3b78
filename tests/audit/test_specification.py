"""docs/receipt.md holds: a reader written from it alone, without this package, agrees."""

import hashlib
import json
import tomllib

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file

import seedless
from seedless.core.config import parse_config
from seedless.runs.train import train_run
from tests.tiny import SETTINGS, flags_restored


def canonical(value):
    plain = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
    return json.dumps(value, allow_nan=False, **plain).encode()


def sha256(value):
    return "sha256:" + hashlib.sha256(canonical(value)).hexdigest()


def hash_tensor(name, array):
    head = canonical({"dtype": str(array.dtype), "name": name, "shape": list(array.shape)})
    return head + b"\n" + array.astype(array.dtype.newbyteorder("<")).tobytes("C")


def digest_set(tensors):
    parts = b"".join(hash_tensor(name, tensors[name]) for name in sorted(tensors))
    return "sha256:" + hashlib.sha256(parts).hexdigest()


def digest_content(sample):
    head = canonical(["<f4", list(sample.shape)])
    return hashlib.blake2b(head + (sample + 0).astype("<f4").tobytes(), digest_size=32).digest()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run on 48 recordings of two leads, which are not normalized, and the recordings."""
    folder = tmp_path_factory.mktemp("specification")
    draw, numbers = np.random.default_rng(0), np.arange(48) % 3
    arrays = {
        "X": draw.normal(size=(48, 2, 250)).astype("f4") + numbers[:, None, None].astype("f4"),
        "Y": np.eye(3, dtype="u1")[numbers],
        "folds": np.arange(48) % 10 + 1,
        "ids": np.array([f"r{row}" for row in range(48)]),
        "classes": np.array(["A", "B", "C"]),
    }
    arrays["X"][0, 0, 0] = -0.0
    np.savez(folder / "ours.npz", **arrays)
    settings = {
        **SETTINGS,
        "data": {"name": str(folder / "ours.npz"), "normalize": "none"},
        "model": {"name": "baseline", "small": True},
        "order": {"batch_size": 16, "offset": 3},
        "train": {"epochs": 2, "checkpoint_every": 1, "evaluate_every": 1},
    }
    with flags_restored():
        return train_run(parse_config(settings), folder / "run").path, arrays


@pytest.fixture
def run(made):
    return made[0]


@pytest.fixture
def receipt(run):
    return json.loads((run / "receipt.json").read_bytes())


@pytest.fixture
def trail(run):
    return [json.loads(line) for line in (run / "trail.jsonl").read_bytes().splitlines()]


def test_the_receipt_covers_itself_and_every_file(run, receipt):
    content = (run / "receipt.json").read_bytes()
    assert content == canonical(receipt) + b"\n"
    predicate = dict(receipt["predicate"])
    claimed = predicate.pop("digest")
    assert claimed == sha256({**receipt, "predicate": predicate})
    files = {p.relative_to(run).as_posix(): p for p in run.rglob("*") if p.is_file()}
    covered = {
        name: "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in files.items()
        if name not in ("receipt.json", ".lock")
    }
    assert predicate["files"] == covered
    assert receipt["subject"][0]["digest"]["sha256"] == covered["weights.safetensors"][7:]


def test_the_configuration(run, receipt):
    config = receipt["predicate"]["config"]
    assert config["digest"] == sha256(config["values"])
    values = config["values"]
    assert values["data"]["name"] == "ours.npz"
    assert not {"path", "cache", "verify"} & {*values["data"]}
    assert "arithmetic" not in values["execution"]
    written = tomllib.loads((run / "config.toml").read_text())
    assert written["train"]["epochs"] == values["train"]["epochs"]


def test_the_trail_is_chained_and_names_its_tensors(run, receipt, trail):
    previous = "sha256:" + 64 * "0"
    for entry in trail:
        content = {key: value for key, value in entry.items() if key != "digest"}
        assert entry["previous"] == previous
        assert entry["digest"] == sha256(content)
        previous = entry["digest"]
    claims = receipt["predicate"]
    assert claims["trail"] == {"head": previous, "entries": len(trail)}
    assert claims["schedule"] == sha256([entry["schedule"] for entry in trail[1:]])
    for key in ("settings", "source", "environment", "data", "initialization", "model"):
        assert trail[0][key] == claims[key]


def test_a_checkpoint(run, receipt, trail):
    for epoch in (1, 2):
        path = run / "checkpoints" / f"epoch-{epoch:04d}.safetensors"
        tensors = load_file(path)
        with safe_open(path, framework="numpy") as file:
            meta = json.loads(file.metadata()["seedless"])
        assert meta.pop("digest") == sha256(meta)
        assert meta["schema"] == "seedless.checkpoint/1"
        assert meta["config"] == receipt["predicate"]["config"]["digest"]
        assert (meta["epoch"], meta["batch"]) == (epoch, 0)
        assert meta["tensors"] == digest_set(tensors)
        state = {name: value for name, value in tensors.items() if not name.startswith("best/")}
        hashes = {n: hashlib.sha256(hash_tensor(n, v)).hexdigest() for n, v in state.items()}
        assert hashes == trail[epoch]["state"]
    best = {n.removeprefix("best/"): v for n, v in tensors.items() if n.startswith("best/")}
    assert digest_set(best) == receipt["predicate"]["weights"]["digest"]
    weights = load_file(run / "weights.safetensors")
    assert digest_set(weights) == receipt["predicate"]["weights"]["digest"]


def test_the_log_says_what_the_trail_says(run, trail):
    lines = [json.loads(line) for line in (run / "log.jsonl").read_bytes().splitlines()]
    for line, entry in zip(lines, trail[1:], strict=True):
        assert {*line} == {"epoch", "step", "loss", "score", "rate", "seconds"}
        assert all(line[key] == entry[key] for key in ("epoch", "step", "loss", "score"))


def test_the_data(made, receipt):
    arrays, claims = made[1], receipt["predicate"]
    head = {"classes": ["A", "B", "C"], "fs": claims["data"]["fs"], "task": claims["data"]["task"]}
    head["leads"] = claims["data"]["leads"]
    rows = [
        hashlib.sha256(digest_content(x) + y.tobytes() + canonical([int(fold), str(name)])).digest()
        for x, y, fold, name in zip(*(arrays[k] for k in ("X", "Y", "folds", "ids")), strict=True)
    ]
    whole = hashlib.sha256(canonical(head) + b"\n" + b"".join(sorted(rows))).hexdigest()
    assert claims["data"]["content"] == f"sha256:{whole}"
    protocol = {"train": [*range(1, 9)], "val": [9], "test": [10]}
    assert claims["data"]["protocol"] == protocol
    splits = {}
    for split, folds in protocol.items():
        part = sorted(rows[row] for row in np.flatnonzero(np.isin(arrays["folds"], folds)))
        splits[split] = "sha256:" + hashlib.sha256(b"".join(part)).hexdigest()
    assert claims["data"]["splits"] == splits
    assert claims["data"]["repeated"] == {"train/val": 0, "train/test": 0, "val/test": 0}
    bound = ("classes", "content", "protocol", "splits", "task")
    assert claims["data"]["digest"] == sha256({key: claims["data"][key] for key in bound})


def test_a_schedule(made, trail):
    arrays = made[1]
    kept = arrays["folds"] <= 8
    samples, labels = arrays["X"][kept], arrays["Y"][kept]
    order = seedless.order("content", samples, labels, batch_size=16, offset=3)
    for epoch in (0, 1):
        shown = np.concatenate(order.schedule(epoch).batches)
        sequence = b"".join(digest_content(samples[r]) + labels[r].tobytes() for r in shown)
        value = {"batch_size": 16, "epoch": 3 + epoch, "label_bytes": 3}
        value["samples"] = hashlib.sha256(sequence).hexdigest()
        assert trail[1 + epoch]["schedule"] == sha256(value)


def test_the_predictions(run, receipt):
    with np.load(run / "predictions.npz") as file:
        arrays = {name: file[name] for name in file.files}
    numbers = {name: value for name, value in arrays.items() if value.dtype.kind != "U"}
    texts = {name: value.tolist() for name, value in arrays.items() if value.dtype.kind == "U"}
    found = sha256({"numbers": digest_set(numbers), "texts": sha256(texts)})
    assert found == receipt["predicate"]["predictions"]


def test_the_published_hash_is_over_the_parameters_in_order(run, receipt):
    weights = load_file(run / "weights.safetensors")
    model = seedless.build("baseline", leads=2, classes=3, small=True)
    names = [name for name, _ in model.named_parameters()]
    content = b"".join(weights[name].astype("<f4").tobytes() for name in names)
    found = hashlib.md5(content, usedforsecurity=False).hexdigest()
    assert found == receipt["predicate"]["weights"]["md5"]


def test_a_recorded_loop(tmp_path):
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    x, settings = torch.tensor([[1.0, 2.0]]), {"rate": float("inf")}
    generator = np.random.default_rng(0)
    with seedless.record(
        tmp_path, model, optimizer, generators={"own": generator}, config=settings
    ) as trail:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        trail.step(step=7, epoch=2, loss=loss, batch={"x": x, "n": 3})
    lines = (tmp_path / "trail.jsonl").read_bytes().splitlines()
    previous = "sha256:" + 64 * "0"
    for line in lines:
        entry = json.loads(line)
        claimed = entry.pop("digest")
        assert (canonical({**entry, "digest": claimed}), claimed) == (line, sha256(entry))
        assert entry["previous"] == previous
        previous = claimed
    start, step = map(json.loads, lines)
    assert (start["kind"], start["schema"], start["step"]) == ("start", "seedless.trail/2", None)
    assert start["settings"] == {"rate": "inf"}
    assert (step["kind"], step["step"], step["epoch"]) == ("step", 7, 2)
    assert step["loss"] == loss.item()
    assert step["rate"] == {"optimizer": [0.5]}
    momentum = optimizer.state[model.weight]["momentum_buffer"].numpy()
    names = {
        "model/weight": model.weight.detach().numpy(),
        "model/bias": model.bias.detach().numpy(),
        "optimizer/momentum_buffer/weight": momentum,
    }
    for name, array in names.items():
        assert step["state"][name] == hashlib.sha256(hash_tensor(name, array)).hexdigest()
    tensor = "sha256:" + hashlib.sha256(hash_tensor("value", x.numpy())).hexdigest()
    described = {"digest": tensor, "dtype": "float32", "shape": [1, 2]}
    assert step["batch"] == sha256({"n": 3, "x": described})
    state = generator.bit_generator.state
    state["state"] = {key: hex(value) for key, value in state["state"].items()}  # beyond 2^63
    assert step["generators"]["own"] == sha256(state)
    options = {k: v for k, v in optimizer.param_groups[0].items() if k not in ("params", "lr")}
    assert step["options"] == {"optimizer": sha256([options])}
