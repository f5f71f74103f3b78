"""Confirm a cause: take it away in both runs, and see whether the difference disappears."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from seedless.audit.doctor.case import Candidate, Case
from seedless.audit.doctor.first_step import STEP_COUNT
from seedless.audit.doctor.pair import Pair, Runner
from seedless.core.bounded_reading import read_file
from seedless.core.errors import SeedlessError
from seedless.script_recorder.outside_values import CLOCK, COMPLETION, ENTROPY
from seedless.script_recorder.settings import Settings

MAX_ERROR_BYTES = 16 * 2**20
MAX_EXPERIMENTS = 5


@dataclass(frozen=True)
class Experiment:
    """A change to both runs.

    Attributes:
        title: what is changed, as in "with ...".
        variables: changes to the environment.
        seeds: generators that the recorder seeds.
        deterministic: torch's deterministic algorithms are used.
        fixed: values from outside that the recorder fixes.
    """

    title: str
    variables: Mapping[str, str] = field(default_factory=dict)
    seeds: Mapping[str, Any] = field(default_factory=dict)
    deterministic: bool = False
    fixed: tuple[str, ...] = ()


_ALL = {"python": 0, "numpy": 0, "torch": 0}
EXPERIMENTS = {
    "seed-python": Experiment("Python's generators seeded", seeds={"python": 0}),
    "seed-numpy": Experiment("numpy's generators seeded", seeds={"numpy": 0}),
    "seed-torch": Experiment("torch's generators seeded", seeds={"torch": 0}),
    "seed-python-values": Experiment(
        "every seed of Python's generators fixed", seeds={"python": 0, "values": True}
    ),
    "seed-numpy-values": Experiment(
        "every seed of numpy's generators fixed", seeds={"numpy": 0, "values": True}
    ),
    "seed-torch-values": Experiment(
        "every seed of torch's generators fixed", seeds={"torch": 0, "values": True}
    ),
    "seed-all": Experiment(
        "all generators seeded, with every seed fixed", seeds={**_ALL, "values": True}
    ),
    "hash-seed": Experiment("PYTHONHASHSEED=0", variables={"PYTHONHASHSEED": "0"}),
    "one-thread": Experiment(
        "one thread", variables={"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    ),
    # It also fills memory that torch.empty makes. An operation without a deterministic form warns.
    "deterministic": Experiment(
        "torch.use_deterministic_algorithms",
        variables={"CUBLAS_WORKSPACE_CONFIG": ":4096:8"},
        deterministic=True,
    ),
    "fixed-clock": Experiment("clocks that show the same in each run", fixed=(CLOCK,)),
    "fixed-entropy": Experiment("the same bytes from os.urandom in each run", fixed=(ENTROPY,)),
    "fixed-completion": Experiment(
        "results taken in the order of their tasks", fixed=(COMPLETION,)
    ),
}
NO_FORM = "does not have a deterministic implementation"  # of torch's warning


@dataclass(frozen=True)
class Result:
    """What an experiment showed.

    Attributes:
        name: the experiment's.
        title: what it changed.
        removed: the difference is gone, or comes later.
        sentence: the result in words.
        runs: the folders of its two runs.
        confirms: it shows the cause, although the difference is there: torch itself names it.
    """

    name: str
    title: str
    removed: bool
    sentence: str
    runs: tuple[str, str]
    confirms: bool = False


def run_experiment(runner: Runner, name: str, case: Case) -> Result:
    """Run a pair with one change, up to the step after the first difference."""
    experiment = EXPERIMENTS[name]
    settings = Settings(
        "",
        end_after=case.first.step + 1,
        seeds=experiment.seeds,
        deterministic=experiment.deterministic,
        fixed=experiment.fixed,
    )
    pair = runner.run_pair(f"experiment with {experiment.title}", settings, experiment.variables)
    result = judge_pair(name, experiment.title, pair, case)
    if experiment.deterministic and not result.removed:
        return _look_for_warning(result, pair, case)
    return result


def _look_for_warning(result: Result, pair: Pair, case: Case) -> Result:
    """Return the result, confirmed where torch warns that the operation has no such form."""
    op = case.op.op.split(".")[1:2] if case.op is not None else []
    name = op[0].strip("_") if op else ""
    errors = pair.a.execution.folder / "stderr.txt"
    try:
        text = read_file(errors, MAX_ERROR_BYTES).decode("utf-8", "replace")
    except (OSError, SeedlessError):
        return result
    warned = [line for line in text.splitlines() if NO_FORM in line and name and name in line]
    if not warned:
        return result
    sentence = f"{result.sentence}; torch warns that {name} {NO_FORM}"
    return replace(result, sentence=sentence, confirms=True)


def judge_pair(name: str, title: str, pair: Pair, case: Case) -> Result:
    """Return what a pair of runs with one change says about the difference of a case."""
    runs = (pair.a.execution.folder.name, pair.b.execution.folder.name)
    made = min(
        (len(process.steps) for run in (pair.a, pair.b) for process in run.recorded.training),
        default=0,
    )
    if pair.first is None and case.first.what == STEP_COUNT and _has_finished(pair):
        sentence = f"with {title}, both runs make {made} steps, and agree"
        return Result(name, title, True, sentence, runs)
    if made < case.first.step:
        sentence = f"with {title}, the runs ended before step {case.first.step}: it shows nothing"
        return Result(name, title, False, sentence, runs)
    first = pair.first
    if first is None:
        sentence = f"with {title}, the runs agree up to step {made}"
        return Result(name, title, True, sentence, runs)
    if first.place > case.first.place:
        sentence = (
            f"with {title}, they agree up to there, and differ next at step {first.step}: "
            f"{first.what}"
        )
        return Result(name, title, True, sentence, runs)
    sentence = f"with {title}, the runs still differ at step {first.step}: {first.what}"
    return Result(name, title, False, sentence, runs)


def _has_finished(pair: Pair) -> bool:
    """Return whether both runs ended by themselves."""
    processes = [process for run in (pair.a, pair.b) for process in run.recorded.training]
    ends = [process.end for process in processes]
    return bool(ends) and all(end is not None and end.reason == "exit" for end in ends)


def choose_experiments(candidates: list[Candidate], case: Case) -> list[str]:
    """Return the experiments to run, in order: those that candidates ask for, then general ones."""
    asked = [one.experiment for one in candidates if one.experiment in EXPERIMENTS]
    has_hash_seed = any(
        process is not None and process.start.variables.get("PYTHONHASHSEED", "random") != "random"
        for process in case.first.processes
    )
    general = [*([] if has_hash_seed else ["hash-seed"]), "seed-all", "one-thread"]
    if case.op is not None and case.op.kind == "op":
        general = ["one-thread"]  # equal inputs: no order and no seed explains it
    if case.first.what == STEP_COUNT:
        general.remove("one-thread")  # every value agrees: no sum was split another way
    if case.reordered or asked[:1] == ["deterministic"]:
        general = []  # what differs is known; the rest would only cost time
    return list(dict.fromkeys([*asked, *general]))[:MAX_EXPERIMENTS]
