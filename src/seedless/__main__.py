"""`python -m seedless` is `seedless`."""

import os
import signal
import sys

# `python -m` has put the current directory first on the import path. It is taken off before more
# is imported, unless this package is there: a `torch.py` in a folder that someone else wrote
# must not be executed. `python -P -m` does not put it there at all.
_package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != _package:
    del sys.path[0]

# While modules are imported, Ctrl-C ends this process without a traceback; later `main` reports it.
_handler = signal.getsignal(signal.SIGINT)
if _handler is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from seedless.cli.main import main  # noqa: E402  # only now: see above

signal.signal(signal.SIGINT, _handler)
main()
