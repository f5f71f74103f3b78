"""`python -m seedless` is `seedless`."""

import os
import sys

# `python -m` has put the current directory first on the import path. It is taken off before more
# is imported, unless this package is there: a `torch.py` in a folder that someone else wrote
# must not be executed. `python -P -m` does not put it there at all.
_package = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if not sys.flags.safe_path and os.path.realpath(sys.path[0]) != _package:
    del sys.path[0]

from seedless.cli.main import main  # noqa: E402  # only now: see above

main()
