"""Start the recorder when the interpreter starts, then run the sitecustomize this one hides.

Python imports `sitecustomize` from the first folder of its path that has one. This folder is put on
PYTHONPATH by `seedless.script_recorder.settings.make_environment`, and holds nothing else.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = "_seedless_recorder"  # a private name: the user may import another `seedless`


def _start_recorder() -> None:
    """Load the recorder from its file, so that nothing else of ours is on the path."""
    file = os.path.join(os.path.dirname(_FOLDER), "__init__.py")
    spec = importlib.util.spec_from_file_location(
        _PACKAGE, file, submodule_search_locations=[os.path.dirname(file)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no recorder at {file}")
    package = importlib.util.module_from_spec(spec)
    sys.modules[_PACKAGE] = package
    spec.loader.exec_module(package)
    importlib.import_module(f"{_PACKAGE}.startup").start()


def _run_hidden_sitecustomize() -> None:
    """Execute the next `sitecustomize` on the path as if ours were not there."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != _FOLDER]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    try:
        _start_recorder()
    except BaseException as error:  # whatever is wrong with us, the user's script must run
        sys.stderr.write(f"seedless: the recorder did not start: {error!r}\n")
    _run_hidden_sitecustomize()
