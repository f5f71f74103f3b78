"""The recorder runs in the user's interpreter, which may be as old as Python 3.9."""

import ast
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import seedless.script_recorder
from seedless.script_recorder.settings import Settings, make_environment, write_settings

OLDEST = (3, 9)
FILES = sorted(Path(seedless.script_recorder.__file__).parent.rglob("*.py"))

# What came after Python 3.9, and might be used in a recorder: by module, its names.
NEWER_NAMES = {
    "builtins": {"aiter", "anext", "ExceptionGroup", "EncodingWarning"},
    "contextlib": {"aclosing", "chdir"},
    "dataclasses": {"KW_ONLY"},
    "enum": {"StrEnum", "member", "nonmember", "verify"},
    "hashlib": {"file_digest"},
    "inspect": {"get_annotations", "getasyncgenstate"},
    "itertools": {"batched", "pairwise"},
    "os": {"EFD_CLOEXEC", "eventfd", "process_cpu_count", "splice"},
    "sys": {"exception", "monitoring", "orig_argv", "stdlib_module_names"},
    "threading": {"getprofile", "gettrace", "setprofile_all_threads", "settrace_all_threads"},
    "types": {"EllipsisType", "NoneType", "NotImplementedType", "UnionType", "get_original_bases"},
    "typing": {"Concatenate", "Never", "ParamSpec", "Self", "TypeAlias", "TypeGuard", "Unpack"}
    | {"TypeVarTuple", "assert_never", "assert_type", "override", "reveal_type"},
}
NEWER_MODULES = {"tomllib"}
NEWER_OPTIONS = {"zip": {"strict"}, "dataclass": {"kw_only", "slots", "weakref_slot"}}
NEWER_METHODS = {"add_note", "bit_count"}


def list_newer(source: str) -> list[str]:
    """Return what of a source Python 3.9 does not have."""
    try:
        tree = ast.parse(source, feature_version=OLDEST)
    except SyntaxError as error:
        return [str(error)]
    return [name for node in ast.walk(tree) for name in _list_newer_in(node)]


def _list_newer_in(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names if alias.name in NEWER_MODULES]
    if isinstance(node, ast.ImportFrom) and not node.level:
        module = node.module or ""
        found = {alias.name for alias in node.names} & NEWER_NAMES.get(module, set())
        return sorted(found) + ([module] if module in NEWER_MODULES else [])
    if isinstance(node, ast.Name) and node.id in NEWER_NAMES["builtins"]:
        return [node.id]
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        newer = node.attr in NEWER_NAMES.get(owner, set()) or node.attr in NEWER_METHODS
        return [f"{owner}.{node.attr}"] if newer else []
    if isinstance(node, ast.Call):
        called = getattr(node.func, "id", getattr(node.func, "attr", ""))
        given = {keyword.arg for keyword in node.keywords}
        found = [f"{called}({name}=)" for name in NEWER_OPTIONS.get(called, set()) & given]
        if called in ("isinstance", "issubclass") and isinstance(node.args[1], ast.BinOp):
            found.append(f"{called} with a union")
        return found
    return []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_file_of_the_recorder_needs_nothing_newer(file):
    source = file.read_text(encoding="utf-8")
    assert list_newer(source) == []
    # Without it, `X | None` in a signature is an error when the file is imported.
    assert "|" not in source or "from __future__ import annotations" in source


@pytest.mark.parametrize(
    "source",
    [
        "match x:\n    case 1: pass",
        "zip(a, b, strict=True)",
        "@dataclass(frozen=True, slots=True)\nclass A: pass",
        "from itertools import pairwise",
        "itertools.pairwise(x)",
        "import tomllib",
        "isinstance(x, int | str)",
        "number.bit_count()",
        "sys.stdlib_module_names",
    ],
)
def test_newer_things_are_noticed(source):
    assert list_newer(source)


def test_the_recorder_starts_in_the_oldest_python(tmp_path):
    python = shutil.which("python3.9")
    # A version manager may list a program that it then does not start.
    if python is None or subprocess.run([python, "--version"], capture_output=True).returncode:
        pytest.skip("needs python3.9 on the PATH")
    (tmp_path / "records").mkdir()
    write_settings(Settings(str(tmp_path / "records")), str(tmp_path / "settings.json"))
    variables = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [python, "-c", "import random; random.seed(3); print('trained')"],
        env=make_environment(str(tmp_path / "settings.json"), variables),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "trained\n", "")
