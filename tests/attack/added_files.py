"""Files, folders, links and pipes that no run has, listed in the receipt or not; planted code."""

import os
import socket

from tests.attack.attack import REFUSALS, SIGNED, VALIDATE, VERIFY, Attack
from tests.attack.forging import read_receipt, seal, write_receipt
from tests.attack.formats import hash_bytes
from tests.attack.runner import BAIT, bait, plant

NAMES = (
    *("notes.txt", ".hidden", "torch.py", "sitecustomize.py", "x.pth", "libtorch.so"),
    *("checkpoints/epoch-0009.safetensors", "checkpoints/torch.py", "checkpoints/epoch-1.bin"),
    *("source/seedless/__init__.py", "data/X.npy", "seedless/__init__.py", "more/report.html"),
    *("__pycache__/torch.cpython-311.pyc", "receipt.json.bak", "RECEIPT.JSON", "weights.pt"),
    *("config.toml ", "line\nbreak", "\x1b[2Jx", "a\u202eb", "caf\u00e9", "-rf", "CON", "a\\b"),
)
# What may lie beside a run without a digest; a receipt that lists it is not one a run writes.
UNLISTABLE = ("report.html", "receipt.dsse.json", "light.json", ".lock")
FOLDERS = ("empty", "checkpoints/empty", "source", "data", ".git")


def list_attacks(victims):
    """Return the attacks by what lies in a run folder or in the current folder."""
    attacks = []
    for name in NAMES:
        attacks += [_add(name, listed=False), _add(name, listed=True)]
    attacks += [_add_listed(name) for name in UNLISTABLE]
    attacks += [_make(f"an empty folder {name}", _make_folder(name)) for name in FOLDERS]
    attacks += [
        _make("a pipe", lambda run: os.mkfifo(run / "pipe")),
        _make("a pipe called report.html", _put_pipe("report.html")),
        _make("a pipe called receipt.dsse.json", lambda run: os.mkfifo(run / "receipt.dsse.json")),
        _make("a pipe called light.json", lambda run: os.mkfifo(run / "light.json")),
        _make("a pipe among the checkpoints", _make_pipe_checkpoint),
        _make("a socket", _make_socket),
        _make("a link to /etc/passwd", lambda run: (run / "x").symlink_to("/etc/passwd")),
        _make("a link report.html to /etc/passwd", _link("report.html", "/etc/passwd")),
        _make("a link .lock to a file outside", _link(".lock", "../../work/json.py")),
        _make("a link to the folder itself", lambda run: (run / "loop").symlink_to(".")),
        _make("a link checkpoints/x to /", _link("checkpoints/x", "/")),
        _make("the folder of checkpoints behind a link", _move_checkpoints),
        _make("400 empty folders inside each other", _make_deep_folders),
        _make("20,000 added files", _make_many_files),
    ]
    return attacks + _list_planted()


def _add(name, listed):
    def change(run):
        file = run / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bait(run.parents[1] / "executed"))
        if listed:
            seal(run)

    return Attack(f"added/{name!r}{', listed' * listed}", "native", change)


def _add_listed(name):
    def change(run):
        (run / name).write_bytes(b"{}")
        statement = read_receipt(run)
        statement["predicate"]["files"][name] = hash_bytes(b"{}")
        write_receipt(run, statement)

    return Attack(f"added/{name!r}, listed though it needs no digest", "native", change)


def _make(what, change):
    return Attack(f"added/{what}", "native", change)


def _make_folder(name):
    return lambda run: (run / name).mkdir(parents=True)


def _link(name, target):
    def change(run):
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(target)

    return change


def _put_pipe(name):
    def change(run):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name)

    return change


def _make_pipe_checkpoint(run):
    os.mkfifo(run / "checkpoints" / "epoch-0003.safetensors")


def _make_socket(run):
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(run / "socket"))


def _move_checkpoints(run):
    (run / "checkpoints").rename(run.parent / "elsewhere")
    (run / "checkpoints").symlink_to("../elsewhere")


def _make_deep_folders(run):
    here = os.open(run, os.O_RDONLY)
    for _ in range(400):
        os.mkdir("d", dir_fd=here)
        deeper = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = deeper
    os.close(here)


def _make_many_files(run):
    for number in range(20_000):
        (run / f"{number}.txt").touch()


def _list_planted():
    """Return the attacks with a whole set of modules in the run folder, for each way to open it."""

    def plant_listed(run):
        plant(run, run.parents[1] / "executed")
        seal(run)

    def plant_beside(run):
        plant(run.parent, run.parents[1] / "executed")

    def plant_package(run):
        for name in BAIT:
            (run / name).mkdir()
            (run / name / "__init__.py").write_bytes(bait(run.parents[1] / "executed"))
        seal(run)

    attacks = []
    for command in (VERIFY, VALIDATE, SIGNED):
        for what, change in (("modules", plant_listed), ("packages", plant_package)):
            attacks.append(
                Attack(
                    f"added/{what} in the run folder, {' '.join(command[2:]) or 'executed'}",
                    "signed" if command == SIGNED else "native",
                    change,
                    command,
                )
            )
    for victim in ("native", "portable"):
        attacks.append(
            Attack(
                f"added/modules beside the {victim} run folder and in the current one, executed",
                victim,
                plant_beside,
                VERIFY,
                REFUSALS | {"IDENTICAL"},
                reason="the run is honest; what counts is that none of the modules is imported",
            )
        )
    return attacks
