"""The lines that the recorder writes, checked and frozen; see docs/reference/doctor.md."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict


def _make_tuple(value: Any) -> Any:
    """Return a list as a tuple, also what lies in lists in it; a single value as a tuple of one."""
    if not isinstance(value, list):
        return (value,)
    return tuple(part for item in value for part in _make_tuple(item))


Digests = Annotated[tuple[str, ...], BeforeValidator(_make_tuple)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_make_tuple)]


class RecordLine(BaseModel):
    """A line of any kind; what it holds beyond its fields is ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Start(RecordLine):
    """The first line of a process: who it is and how it was started."""

    role: Literal["main", "worker"] = "main"
    worker_id: int | None = None
    argv: Texts = ()
    executable: str = ""
    python: str = ""
    rank: int = 0
    world_size: int = 1
    pid: int = 0
    ppid: int = 0
    cwd: str = ""
    variables: dict[str, str] = {}


class Torch(RecordLine):
    """The torch that the process imported."""

    version: str = ""
    cuda: str | None = None
    devices: Texts = ()
    threads: int = 0
    interop_threads: int = 0


class Seed(RecordLine):
    """A generator was seeded; ``value`` None: from the operating system's entropy."""

    generator: str
    call: str = ""
    value: str | None = None
    line: str = ""
    after: int = 0  # how many steps the process had made


class Draws(RecordLine):
    """Draws of one line of code from one generator since the step before."""

    generator: str
    call: str = ""
    line: str = ""
    count: int = 0
    after: int = 0


class Outside(RecordLine):
    """Values of one line that no seed fixes: of a clock, of entropy, of the order of results."""

    source: str
    call: str = ""
    line: str = ""
    count: int = 0
    after: int = 0


class Listing(RecordLine):
    """The names in a folder, in the order the system gave them and sorted, as digests."""

    call: str = ""
    path: str = ""
    ordered: str = ""
    sorted: str = ""
    count: int = 0
    line: str = ""
    after: int = 0


class Step(RecordLine):
    """One step of an optimizer: digests of what went in and what came out.

    Attributes:
        step: its number in the process, from 1, over all optimizers.
        values: the digests by name; several where an event occurred several times.
        shown: a few numbers for people: loss, rate, scale, shapes.
        generators: digests of the generators' states after the step.
        flags: the flags of torch that held, added by `read_process`.
    """

    step: int
    optimizer: int = 0
    optimizer_type: str = ""
    line: str = ""
    values: dict[str, Digests] = {}
    shown: dict[str, Any] = {}
    generators: dict[str, str] = {}
    flags: dict[str, Any] = {}


class ReadFile(RecordLine):
    """A file that the process read."""

    path: str
    size: int | None = None
    sha256: str | None = None
    mtime_ns: int | None = None
    line: str = ""


class WrittenFile(RecordLine):
    """A file that the process wrote."""

    path: str
    line: str = ""


class Files(RecordLine):
    """The files that the process opened."""

    read: tuple[ReadFile, ...] = ()
    written: tuple[WrittenFile, ...] = ()


class RecorderError(RecordLine):
    """The recorder failed, and recorded nothing more."""

    where: str = ""
    error: str = ""


class SourceFile(RecordLine):
    """A file of Python code that the process imported."""

    path: str
    sha256: str | None = None


class End(RecordLine):
    """How the process ended."""

    steps: int = 0
    reason: str = ""
    error: str | None = None


class Sources(RecordLine):
    """The files of Python code that the process imported from the user's own folders."""

    files: tuple[SourceFile, ...] = ()


class Packages(RecordLine):
    """Versions of the loaded packages, and those that open files by themselves."""

    versions: dict[str, str] = {}
    native: tuple[str, ...] = ()
