"""Studies on a CUDA device: many runs in one process, stripped runs executed again."""

import pytest

from seedless.audit.verification import verify
from seedless.studies.engine.run_archive import unpack_run_archive, write_run_archives
from seedless.studies.engine.store import Store
from seedless.studies.engine.worker import work_through
from tests.studies.tiny_grids import make_tiny_grid
from tests.tiny import flags_restored

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def _restore():
    with flags_restored():
        yield


def test_a_run_has_its_bits_after_any_other_in_the_process(tmp_path):
    points = make_tiny_grid(epochs=3, execution={"device": "cuda"}).points
    there, back = Store(tmp_path / "there"), Store(tmp_path / "back")
    work_through(there, points)
    work_through(back, points[::-1])
    for point in points:
        assert there.read(point).weights is not None
        assert there.read(point).weights == back.read(point).weights
    assert len({there.read(point).weights for point in points}) == len(points)


def test_a_stripped_run_is_executed_again_on_the_device(tmp_path):
    point = make_tiny_grid(epochs=2, execution={"device": "cuda"}).points[0]
    store, other = Store(tmp_path / "store"), Store(tmp_path / "other")
    work_through(store, [point])
    (archive,) = write_run_archives(store, [point], tmp_path / "one.tar.xz")
    unpack_run_archive(archive.file, other)
    assert verify(other.run_folder(point)).outcome == "identical"
