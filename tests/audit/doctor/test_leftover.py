"""Files that the first run left over for the second."""

import pytest

from seedless.audit.doctor.command import Execution
from seedless.audit.doctor.leftover import find_leftovers, remove_inside
from seedless.audit.doctor.pair import Run, compare
from seedless.audit.doctor.recorded_run import read_run
from tests.audit.doctor.records import make_process, make_step, write_process

FIRST, SECOND = 1000, 2000  # when the two runs were started


@pytest.fixture
def find(tmp_path):
    """Return a function that finds the leftovers of two runs with these files."""

    def find(*files):
        runs = []
        for index, (read, written) in enumerate(files):
            line = {"kind": "files", "read": read, "written": [{"path": one} for one in written]}
            write_process(tmp_path / str(index), [make_process(), make_step(1), line])
            execution = Execution(tmp_path, 0, 1.0, started_ns=(FIRST, SECOND)[index])
            runs.append(Run(execution, read_run(tmp_path / str(index))))
        return [file.path for file in find_leftovers(compare(*runs))]

    return find


def read(path, mtime_ns):
    return {"path": path, "size": 1, "mtime_ns": mtime_ns, "line": "train.py:7"}


def test_what_the_first_run_wrote_and_the_second_read(find):
    assert find(([], ["best.pt"]), ([read("best.pt", 1500)], [])) == ["best.pt"]


def test_a_file_that_was_renamed_is_known_by_its_time(find):
    assert find(([], ["last.pt.tmp"]), ([read("last.pt", 1500)], [])) == ["last.pt"]


def test_a_file_that_was_there_before_is_none(find):
    old = read("data.csv", 500)
    assert find(([old], []), ([old], [])) == []


def test_a_file_that_the_second_run_wrote_itself_is_none(find):
    first = [read("best.pt", 1500)]
    assert find((first, ["best.pt"]), ([read("best.pt", 2500)], ["best.pt"])) == []


def test_files_that_the_first_run_did_not_read_come_first(find):
    files = [read("a", 1500), read("b", 1500)]
    assert find(([read("a", 1400)], ["a", "b"]), (files, [])) == ["b", "a"]


def test_the_folder_of_each_run_is_none(find):
    assert find(([], ["{out}/a"]), ([read("{out}/a", 1500)], [])) == []


def test_nothing_outside_a_folder_is_removed(tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    (tmp_path / "precious").write_text("")
    (folder / "link").symlink_to(tmp_path)
    (folder / "inside").write_text("")
    for path in ("../precious", str(tmp_path / "precious"), "link/precious", "inside", "missing"):
        remove_inside(folder, path)
    assert (tmp_path / "precious").exists()
    assert not (folder / "inside").exists()
