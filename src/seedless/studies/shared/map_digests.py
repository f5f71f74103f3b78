"""Digests of attribution maps, computed in this process or in a worker process.

Equal digests from two processes show that an explanation is reproducible.
"""

from pathlib import Path

from seedless.analysis.attribute import Explained, attribute_run
from seedless.core.worker_requests import answer_request, ask_worker

RECORDS = 256  # the largest number of test records that are explained


def explain_run(run: Path, method: str, data: str | None = None) -> Explained:
    """Return the maps of a run's test records; ``data``: where they are, if they were moved."""
    return attribute_run(run, records=RECORDS, method=method, data=data)


def digest_maps(maps: Explained) -> dict[str, str]:
    """Return the digest of the maps of each layer."""
    return {part.layer: part.digest for part in maps.attributions}


def digest_in_worker(run: Path, method: str, data: str | None = None) -> dict[str, str]:
    """Return the digest of the maps of each layer, computed in a process of its own."""
    return dict(ask_worker("seedless.studies.shared.map_digests", [str(run), method, data]))


if __name__ == "__main__":
    from seedless.numerics.determinism import set_environment_variables

    set_environment_variables()
    answer_request(lambda request: digest_maps(explain_run(Path(request[0]), *request[1:])))
