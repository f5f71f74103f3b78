"""Errors of the program: bad input is 2, a defect is 70, and neither is 1, which is a result."""

import subprocess
import sys

import pytest

from seedless.cli import main as program
from seedless.core.errors import RunError


@pytest.fixture
def fail(monkeypatch, capsys):
    """End the program with an error; return exit code and standard error."""

    def fail(error):
        def raise_error():
            raise error

        monkeypatch.setattr(program, "app", raise_error)
        with pytest.raises(SystemExit) as ended:
            program.main()
        return ended.value.code, capsys.readouterr().err

    return fail


def test_bad_input_is_2_and_one_message(fail):
    assert fail(RunError("no such run")) == (2, "error: no such run\n")


@pytest.mark.parametrize("error", [KeyError("x"), MemoryError(), RecursionError(), OSError(5, "x")])
def test_a_defect_is_70_with_a_traceback(fail, error):
    code, text = fail(error)
    assert code == 70
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("error: this is a defect of seedless; please report the text above\n")


def test_no_message_moves_the_cursor_or_begins_a_line(fail):
    code, text = fail(RunError("x\x1b[2K\rIDENTICAL: a\nIDENTICAL: b\x9b"))
    assert (code, text) == (2, "error: x\\x1b[2K\\rIDENTICAL: a\n  IDENTICAL: b\\x9b\n")
    code, text = fail(KeyError("\x1b[2K"))
    assert code == 70
    assert "\x1b" not in text


def test_a_reader_that_has_gone_is_no_result():
    code = (
        "import sys; from seedless.cli.main import main; "
        "sys.argv = ['seedless', 'data', 'list']; main()"
    )
    process = subprocess.Popen([sys.executable, "-u", "-c", code], stdout=subprocess.PIPE)
    process.stdout.close()
    assert process.wait() == 141
