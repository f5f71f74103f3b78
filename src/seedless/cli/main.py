"""The command line: one file for each command, heavy imports only inside the commands.

Bad input ends with one message on standard error and exit code 2, never with a traceback; Ctrl-C
ends with one line and exit code 130. An error that nobody foresaw ends with its traceback and exit
code 70, since 1 is a result: two runs differ.
"""

import os
import sys
import traceback
from importlib import import_module
from typing import Any

import typer

from seedless import __version__
from seedless.cli.options import STOPPED, CommandGroup, Program, print_line
from seedless.core.display import escape_lines, escape_paragraph
from seedless.core.errors import LostProcessError, SeedlessError
from seedless.core.local_group import LOST
from seedless.numerics.determinism import set_environment_variables

DEFECT = 70  # the exit code of an error inside this program, as in sysexits.h
CLOSED_PIPE = 141  # of a program whose reader has gone, as a shell reports SIGPIPE

# Panels of `seedless --help`, and the commands in each, in the order in which they are shown. The
# file of a command's name holds the function of that name, or `app`, a group of commands.
COMMANDS = {
    "Make and prove": (
        *("demo", "train", "resume", "verify", "diff", "referee", "sign", "doctor", "run"),
    ),
    "Analyse": ("evaluate", "compare", "churn", "robustness", "attribute"),
    "Share": ("report", "bundle", "card", "export", "provenance"),
    "Inspect": ("config", "data", "init", "order", "env", "portable", "bench"),
    "Studies": ("study",),
}


class _Commands(CommandGroup):
    """The commands in the order of `COMMANDS`. Ctrl-C ends each of them with one line."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for panel in COMMANDS.values() for name in panel]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print_line("stopped by Ctrl-C", err=True)
            sys.exit(STOPPED)
        except BrokenPipeError:  # else typer would end with 1
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(CLOSED_PIPE)


app = Program(
    cls=_Commands,
    help="Train a network twice and get the same bits, without a seed, and hand anyone the proof.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _panel, _names in COMMANDS.items():
    for _name in _names:
        _module = import_module(f"seedless.cli.{_name}")
        if hasattr(_module, "app"):
            app.add_typer(_module.app, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(getattr(_module, _name))


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version.")) -> None:
    if version:
        typer.echo(f"seedless {__version__}")
        raise typer.Exit()


def main() -> None:
    """Run the program."""
    set_environment_variables()
    try:
        app()
    except SystemExit as end:  # which typer raises at the end of every command
        if not isinstance(end.code, int):
            raise
        leave(end.code)
    except LostProcessError as error:
        if error.reports_it:
            typer.echo(escape_paragraph(f"error: {error}"), err=True)
        leave(LOST)
    except SeedlessError as error:
        typer.echo(escape_paragraph(f"error: {error}"), err=True)
        leave(2)
    except Exception:
        typer.echo(escape_lines(traceback.format_exc()), err=True)
        print_line("error: this is a defect of seedless; please report the text above", err=True)
        leave(DEFECT)


def leave(code: int) -> None:
    """End this process. One of a group ends at once: torch's threads would wait for the others."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        sys.exit(code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
