"""Which packages a process has loaded: their versions, and those that open files unseen."""

from __future__ import annotations

import sys
from typing import Any

# Packages whose native code opens files by itself, which no audit hook of Python sees.
NATIVE_READERS = (
    *("av", "cv2", "decord", "duckdb", "ffcv", "h5py", "lmdb", "netCDF4", "nvidia.dali", "osgeo"),
    *("polars", "pyarrow", "rasterio", "safetensors", "sentencepiece", "SimpleITK", "soundfile"),
    *("sqlite3", "tables", "tensorflow", "tokenizers", "torchaudio", "torchcodec", "zstandard"),
)
_INSTALLED = ("site-packages", "dist-packages")
_LONGEST_TEXT = 200
_MOST_PACKAGES = 500


def describe_packages() -> dict[str, Any]:
    """Return the line of kind "packages": versions by name, and the loaded native readers.

    Only packages that are installed, and not part of Python, have a version here.
    """
    versions: dict[str, str] = {}
    for name, module in sorted(sys.modules.items()):
        if "." in name or name.startswith("_"):
            continue
        # Not `getattr`: a module may load others to answer it.
        values = getattr(module, "__dict__", {})
        version, file = values.get("__version__"), values.get("__file__")
        if not isinstance(version, str) or not isinstance(file, str):
            continue
        if any(folder in file for folder in _INSTALLED) and len(versions) < _MOST_PACKAGES:
            versions[name[:_LONGEST_TEXT]] = str(version)[:_LONGEST_TEXT]
    native = [name for name in NATIVE_READERS if name in sys.modules]
    return {"kind": "packages", "versions": versions, "native": native}
