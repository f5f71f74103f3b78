"""The honest victims, made once with the command line: tiny, of every kind that can be attacked.

native, other       runs of `train`: the second with another learning rate
tuned               a run of `train` that began with base.safetensors, the weights of another
portable            the same in portable arithmetic
fit                 a run of `fit`, with its model in entry/own_model.py
script              the run of script-work/train.py
signed              the native run with a signature; keys/ holds the key, and another's
stripped            a run out of the file of `study archive`
bundle.zip          the native run with its source
data.zip            the same with its data
own.zip             a run on arrays of its maker's own, with the data: only the bundle has them
store, archive.tar.xz   a store of a study with four runs, and the archive of it
"""

import shutil
import sys

import numpy as np

from tests.attack.formats import write_npz

TRAIN = (
    *("--set", "train.epochs=2", "--set", "train.warmup_steps=0"),
    *("--set", "train.checkpoint_every=1", "--set", "train.evaluate_every=1"),
    *("--set", "execution.device=cpu", "--set", "execution.threads=1"),
)
IMAGES = ("train", "images-small", "--set", "data.records=60", *TRAIN)
STUDY = (
    *("golden", "--set", "train.epochs=1", "--set", "train.warmup_steps=0"),
    *("--seeds", "1", "--device", "cpu"),
)

OWN_MODEL = """
import numpy as np
from torch import nn


def make_model():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))


def make_arrays(n, start):
    rows = np.arange(start, start + n)
    labels = rows % 3
    samples = np.sin(np.outer(rows + 1, np.arange(1, 9))).astype("f4")
    return samples + labels[:, None].astype("f4"), labels


def give():
    return {
        "model": make_model,
        "train": make_arrays(48, 0),
        "val": make_arrays(24, 100),
        "test": make_arrays(24, 200),
    }


if __name__ == "__main__":
    import seedless

    config = {
        "init": {"basis": "dct"},
        "order": {"batch_size": 16},
        "train": {"epochs": 2, "checkpoint_every": 1, "evaluate_every": 1},
        "execution": {"device": "cpu", "threads": 1},
    }
    seedless.fit(**give(), config=config, out="fit")
"""


SCRIPT = """
import json
import torch

torch.manual_seed(0)
rows = torch.tensor(json.loads(open("table.json").read()))
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    loss = model(rows).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "model.pt")
"""


def make_victims(folder, server):
    """Make all victims in a new folder."""
    folder.mkdir(parents=True)
    (folder / "entry").mkdir()
    (folder / "entry" / "own_model.py").write_text(OWN_MODEL)
    arrays = make_own_arrays()
    (folder / "own.npz").write_bytes(write_npz(arrays))
    (folder / "leaky.npz").write_bytes(write_npz(repeat_test_records(arrays)))

    work = folder / "script-work"
    work.mkdir()
    (work / "train.py").write_text(SCRIPT)
    (work / "table.json").write_text("[[0.5, 1.0], [0.25, -1.0]]")

    def run(*arguments, cwd=folder, **more):
        answer = server.run(arguments, cwd=cwd, processor_seconds=300, **more)
        assert answer["code"] == 0, (arguments, answer["stderr"].decode())

    run(*IMAGES, "--out", "native")
    run(*IMAGES, "--set", "train.rate=0.01", "--out", "other")
    run(*IMAGES, "--set", "execution.arithmetic=portable", "--out", "portable")
    shutil.copyfile(folder / "other" / "weights.safetensors", folder / "base.safetensors")
    run(*IMAGES, "--set", f"init.weights={folder / 'base.safetensors'}", "--out", "tuned")
    run(script=folder / "entry" / "own_model.py")
    run("run", "--out", folder / "script", "--", sys.executable, "train.py", cwd=work)
    (folder / "keys").mkdir()
    run("sign", "--new-key", "keys/key.pem")
    run("sign", "--new-key", "keys/stranger.pem")
    shutil.copytree(folder / "native", folder / "signed")
    run("sign", "signed", "--key", "keys/key.pem")
    shutil.copytree(folder / "signed", folder / "attested")
    run("provenance", "attested")
    run("provenance", "attested", "--key", "keys/key.pem")
    run("sign", "--new-key", "keys/model.pem", "--model-signing")
    run("sign", "attested", "--model-signing", "--key", "keys/model.pem")
    summary = ("--summary", "summary.json", "--key", "keys/key.pem")
    run("verify", "attested", *summary)
    (folder / "summary.json").rename(folder / "attested" / "verification.dsse.json")
    run("bundle", "native", "--out", "bundle.zip")
    run("bundle", "signed", "--out", "signed.zip")
    run("bundle", "native", "--with-data", "--out", "data.zip")
    run("train", "images-small", "--set", "data.name=own.npz", *TRAIN, "--out", "own")
    run("bundle", "own", "--with-data", "--out", "own.zip")
    accept = ("--set", "data.repeated=5")
    run("train", "images-small", "--set", "data.name=leaky.npz", *accept, *TRAIN, "--out", "leaky")
    run("bundle", "leaky", "--with-data", "--out", "leaky.zip")
    run("study", "run", *STUDY, "--store", "store")
    run("study", "archive", *STUDY, "--store", "store", "--out", "archive.tar.xz")
    run("study", "unpack", "archive.tar.xz", "--store", "unpacked")
    shutil.copytree(sorted((folder / "unpacked" / "runs").iterdir())[0], folder / "stripped")


def make_own_arrays():
    """Return 50 grey images of two classes and ten folds, as `train` reads them."""
    rows = np.arange(50)
    labels = rows // 10 % 2
    pixels = np.arange(256).reshape(1, 16, 16)
    images = rows[:, None, None, None] * 37 + pixels * 11 + labels[:, None, None, None] * 97
    return {"X": (images % 256).astype("u1"), "Y": labels, "folds": rows % 10 + 1}


def repeat_test_records(arrays):
    """Return the arrays with the five test records once more, for training."""
    tested = arrays["folds"] == 10
    more = {name: array[tested] for name, array in arrays.items()}
    more["folds"] = np.ones_like(more["folds"])
    return {name: np.concatenate([array, more[name]]) for name, array in arrays.items()}


def make_victims_once(folder, server):
    """Make the victims if nobody did; test processes share them."""
    from filelock import FileLock

    with FileLock(f"{folder}.lock"):
        if not (folder / "done").exists():
            make_victims(folder, server)
            (folder / "done").touch()
    return folder
