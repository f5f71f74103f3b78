"""What a receipt states of a script's run: the command, its sources, its environment, its outputs.

docs/receipt.md specifies the fields. A receipt can come from anyone, so every field is checked for
its form here, before anything prints it, compares it or opens a file that it names.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from seedless.core.bounded_reading import shorten
from seedless.numerics.environment import VARIABLES

KIND = "script"  # the value of `kind` in the receipt of a script's run
SCHEMA = "2.1"  # of these receipts; schema 2.0 reserved their fields and could not fill them

# Fields about a configuration and a model of this package. A script's run has neither.
EMPTY_FIELDS = (
    *("config", "settings", "data", "model", "initialization", "schedule"),
    *("promise", "weights", "metrics", "predictions"),
)
MAX_PATH_CHARACTERS = 1_024
MAX_ARGUMENTS = 1_000
MAX_ARGUMENT_CHARACTERS = 8_192
MAX_PROCESSES = 1_024


def is_inner_path(text: str) -> bool:
    """Whether a text is the POSIX path of a file in a folder, which it cannot lead out of.

    >>> is_inner_path("models/net.py"), is_inner_path("../net.py"), is_inner_path("/net.py")
    (True, False, False)
    """
    parts = text.split("/")
    plain = not {"", ".", ".."} & {*parts} and "\\" not in text
    return plain and text.isprintable() and len(text) <= MAX_PATH_CHARACTERS


def is_outer_path(text: str) -> bool:
    """Whether a text is an absolute path in its shortest form.

    >>> is_outer_path("/data/train.npy"), is_outer_path("/data/../train.npy")
    (True, False)
    """
    return text.startswith("/") and not text.startswith("//") and is_inner_path(text[1:])


def _check_inner(text: str) -> str:
    if not is_inner_path(text):
        raise ValueError("not the path of a file in the working folder")
    return text


def _check_any_path(text: str) -> str:
    if not is_inner_path(text) and not is_outer_path(text):
        raise ValueError("not a path in its shortest form")
    return text


def _check_variable(name: str) -> str:
    # Others are not recorded: the process that executes the script again gets these, and one such
    # as LD_PRELOAD would execute code of the receipt's maker.
    if name not in VARIABLES:
        raise ValueError("not a variable that receipts hold")
    return name


InnerPath = Annotated[str, AfterValidator(_check_inner)]
AnyFilePath = Annotated[str, AfterValidator(_check_any_path)]
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
ShortDigest = Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")]
Size = Annotated[int, Field(ge=0, lt=2**62)]
Count = Annotated[int, Field(ge=0, lt=2**31)]
Text = Annotated[str, Field(max_length=500)]
# They become variables of a process: a NUL would stop it, and a line feed would hide another one.
Variable = Annotated[str, Field(pattern=r"^[ -~]{0,500}$")]
VariableName = Annotated[str, AfterValidator(_check_variable)]
Argument = Annotated[str, Field(max_length=MAX_ARGUMENT_CHARACTERS, pattern=r"^[^\x00]*$")]
Number = float | None


class _Claims(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Output(_Claims):
    """A file that the script wrote; ``content`` is of what it holds, where it is an archive."""

    size: Size
    digest: Digest
    content: Digest | None


class DataFile(_Claims):
    """A file that the script read, one line of data.jsonl."""

    path: AnyFilePath
    size: Size
    digest: Digest


class Script(_Claims):
    """The field `script` of a receipt.

    Attributes:
        command: the arguments; the first is the name of a program, without its folder.
        exit_code: of the command. Only a command that succeeded gets a receipt.
        sources: Python files that it imported from outside the installed packages: path -> digest.
            A path is relative to the working folder, or absolute for a file outside it.
        data: how many files data.jsonl lists, and their bytes.
        changed: files that it read and then changed or removed: their first content is not known.
        unobserved: loaded packages that open files without Python's `open`.
        outputs: the files that it wrote: path -> size and digests.
        outputs_named: whether the user named the outputs; else they are all files it wrote.
    """

    command: Annotated[list[Argument], Field(min_length=1, max_length=MAX_ARGUMENTS)]
    exit_code: Annotated[int, Field(ge=0, le=0)]
    sources: dict[AnyFilePath, Digest]
    data: dict[Literal["files", "bytes"], Size]
    changed: list[AnyFilePath]
    unobserved: list[Text]
    outputs: dict[InnerPath, Output]
    outputs_named: bool


class TrailEnd(_Claims):
    """The end of a trail: the digest of its last line, and how many lines it has."""

    head: Digest
    entries: Annotated[int, Field(ge=2, lt=2**31)]


class Processes(_Claims):
    """The field `processes`: how many processes trained, and the end of the trail of each."""

    count: Annotated[int, Field(ge=1, le=MAX_PROCESSES)]
    trails: list[TrailEnd]


class ScriptEnvironment(_Claims):
    """The field `environment`: what the script's own interpreter said, and the processor."""

    python: Text
    machine: Text
    packages: dict[Text, Text]
    cpu: dict[Literal["model"], Text]
    devices: list[dict[Literal["name"], Text]]
    cuda: Text | None
    threads: dict[Literal["intraop", "interop"], Count]
    flags: dict[Text, bool | int | Number | Text]
    variables: dict[VariableName, Variable]


class Step(_Claims):
    """A line of a trail after the first, without the two fields that chain it.

    Attributes:
        step: counted from 1 over all optimizers of the process.
        optimizer: which of its optimizers, counted from 0 in the order of their first steps.
        loss: mean of the losses since the step before, where they are finite.
        rate: the learning rate of the first group of parameters.
        state: what the recorder digested: "weights", "batch", "gradients", ...; and "between", of
            the states since the line before, where not every step has a line.
    """

    kind: Literal["step"]
    step: Annotated[int, Field(ge=1, lt=2**62)]
    optimizer: Count
    loss: Number
    rate: Number
    state: dict[Text, ShortDigest]


def check_claims(claims: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the form of a script's receipt, a sentence each.

    Args:
        claims: the receipt's predicate; all its fields are there.
    """
    problems = [
        f"expected null as predicate.{name} of a script's run, got something else"
        for name in EMPTY_FIELDS
        if claims.get(name) is not None
    ]
    if claims.get("callables") != []:
        problems.append("expected [] as predicate.callables of a script's run")
    models: dict[str, type[BaseModel]] = {
        "script": Script,
        "trail": TrailEnd,
        "processes": Processes,
        "environment": ScriptEnvironment,
    }
    for name, model in models.items():
        problems += find_problem(model, claims.get(name), f"predicate.{name}")
    if problems:
        return problems
    command = claims["script"]["command"]
    if os.path.basename(command[0]) != command[0] or not command[0].isprintable():
        problems.append(
            "predicate.script.command begins with a path: expected the name of a program, without "
            "its folder"
        )
    processes = claims["processes"]
    if len(processes["trails"]) != processes["count"] or processes["trails"][0] != claims["trail"]:
        problems.append("predicate.processes does not have one trail for each process")
    return problems


def find_problem(model: type[BaseModel], value: Any, where: str) -> list[str]:
    """Return a sentence on the first part of a value that does not have its model's form."""
    try:
        model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (where, *first["loc"])))
        return [f"{shorten(place, 120)} does not have its form: {shorten(first['msg'], 120)}"]
    return []


def list_outputs(claims: Mapping[str, Any]) -> dict[str, str]:
    """Return what the receipt of a script's run is about, as file -> digest, sorted.

    These are its outputs, and its trail if it wrote none.
    """
    outputs: Mapping[str, Any] = claims["script"]["outputs"]
    named = {name: str(outputs[name]["digest"]) for name in sorted(outputs)}
    return named or {"trail.jsonl": str(claims["files"]["trail.jsonl"])}
