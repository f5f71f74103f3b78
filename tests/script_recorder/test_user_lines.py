"""The user's own code is told apart from packages, the standard library and the recorder."""

import json
import sys

import numpy as np
import torch

from seedless.script_recorder import user_lines
from seedless.script_recorder.user_lines import (
    find_maker_line,
    find_user_line,
    is_installed,
    is_standard_library,
)


def test_files_are_told_apart(tmp_path):
    mine = tmp_path / "train.py"
    link = tmp_path / "linked.py"
    link.symlink_to(torch.__file__)
    assert [is_installed(str(path)) for path in (mine, link)] == [False, True]
    assert all(is_installed(path) for path in (json.__file__, np.__file__, user_lines.__file__))
    assert is_standard_library(json.__file__)
    assert is_standard_library("<frozen importlib._bootstrap>")
    assert not is_standard_library(np.__file__)
    assert not is_standard_library(str(mine))


def test_the_innermost_line_of_the_user_is_found(tmp_path):
    """Sorting calls the key from C, the decoder of JSON calls its hook from the library."""
    here = sys._getframe().f_code.co_firstlineno
    found = json.loads("{}", object_hook=lambda _: find_user_line())
    assert found.endswith(f"test_user_lines.py:{here + 3}")


def test_a_file_is_preferred_to_code_without_one():
    found = []
    exec(
        compile("\nfound.append(find_user_line())", "<string>", "exec"),
        {"found": found, "find_user_line": find_user_line},
    )
    assert found[0].rpartition(":")[0].endswith("test_user_lines.py")


class Part:
    """Draws in a comprehension, as a model makes its layers."""

    def __init__(self):
        (self.line,) = [find_maker_line(lambda one: isinstance(one, Part)) for _ in "1"]


class Whole(Part):
    def __init__(self):
        self.part = Part()


def test_the_maker_of_a_model_is_outside_its_methods():
    whole, number = Whole(), sys._getframe().f_lineno
    assert whole.part.line.endswith(f"test_user_lines.py:{number}")
    line, number = find_maker_line(lambda one: False), sys._getframe().f_lineno
    assert line.endswith(f"test_user_lines.py:{number}")
