"""Workers on a Ray cluster: one task per run, on machines that share the folder of the store.

The number of threads is part of the configuration and set inside the task, so the cluster's own
OMP_NUM_THREADS has no effect. A task whose machine is lost is started again on another machine, and
resumes its run from the last checkpoint.

Ray puts the current directory of the process that starts it first on the import path of its
workers. So it is started from an empty folder, and tasks change to the directory of the command. A
session of Ray that the user started before has the user's directory there: the user's choice.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from seedless.core.errors import StudyError
from seedless.core.processes import build_environment
from seedless.studies.engine.grid import Point
from seedless.studies.engine.local_workers import list_unfinished
from seedless.studies.engine.store import Store, explain_error
from seedless.studies.engine.worker import Worker

RETRIES = 5  # of a task whose worker or machine is lost
POLL_SECONDS = 0.5  # between two looks at the store


def run_ray(
    store: Store,
    points: Sequence[Point],
    *,
    runs_per_device: int = 1,
    processes: int = 1,
    again: bool = False,
    limit: float | None = None,
    watch: Callable[[], None] = lambda: None,
) -> None:
    """Execute all points on the Ray cluster at RAY_ADDRESS, or on this machine without one."""
    if limit is not None:
        raise StudyError("--limit belongs to --engine local: a cluster has limits of its own")
    ray = _import_ray()
    if runs_per_device < 1:
        raise StudyError(f"expected runs_per_device of at least 1, got {runs_per_device}")
    start_here = not ray.is_initialized()
    with TemporaryDirectory() as folder:
        if start_here:
            _start_ray(ray, folder)
        try:
            _run_tasks(ray, store, points, runs_per_device, processes, again, watch)
        finally:
            if start_here:
                ray.shutdown()


def _start_ray(ray: Any, folder: str) -> None:
    """Connect to a cluster, or start one here whose workers begin in ``folder``, which is empty."""
    # Without an address Ray would join the cluster that was last started on this machine.
    place = os.environ.get("RAY_ADDRESS") or "local"
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anyone
    made = build_environment()
    variables = {name: made[name] for name in ("PYTHONPATH", "PYTHONSAFEPATH")}
    try:
        # The variables for the workers, and for the processes that Ray itself consists of.
        with chdir(folder), _set_variables(variables):
            ray.init(
                address=place,
                log_to_driver=False,
                include_dashboard=False,
                runtime_env={"env_vars": variables},
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise StudyError(
            f"cannot reach a Ray cluster at {place}: {explain_error(error)}. Is it running, "
            "is RAY_ADDRESS its address, and does this process have its token, if it needs one?"
        ) from None


def _run_tasks(
    ray: Any,
    store: Store,
    points: Sequence[Point],
    runs_per_device: int,
    processes: int,
    again: bool,
    watch: Callable[[], None],
) -> None:
    gpus = ray.cluster_resources().get("GPU", 0)
    task = ray.remote(
        num_cpus=processes,
        num_gpus=1 / runs_per_device if gpus else 0,
        max_retries=RETRIES,
        retry_exceptions=False,
    )(execute_point)
    folder = str(store.folder.absolute())
    waiting = [task.remote(folder, point, again, os.getcwd(), processes) for point in points]
    while waiting:
        done, waiting = ray.wait(waiting, num_returns=len(waiting), timeout=POLL_SECONDS)
        for one in done:
            ray.get(one)
        watch()
    left = list_unfinished(store, points)
    if left:
        raise StudyError(
            f"{len(left)} of {len(points)} runs are not finished, the first is {left[0].label}; "
            "do all machines of the cluster see the store's folder? Finished runs are not repeated"
        )


def execute_point(
    folder: str, point: Point, again: bool, directory: str, processes: int = 1
) -> str:
    """Execute one run in a worker of the cluster; return its key.

    ``directory``: where the command was started, which relative paths of data begin at. Another
    machine of the cluster may not have it. ``processes``: how many train the run, on one machine.
    """
    from seedless.numerics.determinism import set_environment_variables

    set_environment_variables()
    if os.path.isdir(directory):
        os.chdir(directory)
    store = Store(Path(folder))
    Worker(store, processes).execute(point, again=again)
    return point.key


@contextmanager
def _set_variables(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a while."""
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


def _import_ray() -> Any:
    try:
        import ray
    except ImportError:
        raise StudyError(
            "the engine ray needs Ray: pip install 'seedless[ray]'; --engine local needs nothing"
        ) from None
    return ray
