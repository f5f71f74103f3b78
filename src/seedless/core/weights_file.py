"""The weights file that a run begins with: found, hashed, and named in the configuration.

A configuration has the path of the file. The digest of its bytes is filled in before anything is
computed. From then on the digest identifies the file: a file with other bytes is refused, whatever
its path. runs/initial_weights.py reads the tensors.
"""

import hashlib
from pathlib import Path
from typing import IO

from seedless.core.bounded_reading import open_plain_file, shorten
from seedless.core.config import Config
from seedless.core.display import escape_text
from seedless.core.errors import ConfigError
from seedless.core.files import AnyPath

FILE_START = "file"  # `init.basis` of a run that takes every tensor from a file
MAX_WEIGHTS_BYTES = 2**38  # hashing so much takes minutes; a file with holes can claim far more
# How files begin that are not safetensors but hold weights all the same: zip files, which
# `torch.save` writes, and the pickles that it wrote before.
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_PICKLE_SUFFIXES = (".pt", ".pth", ".bin", ".ckpt", ".pkl")
_START_DEFAULTS = {"residual_scale": None, "heads": None, "seed": None, "offset": 0}


def pin_weights(config: Config) -> Config:
    """Return the configuration with the digest of its weights file; other bytes are refused.

    Where every tensor is taken from the file, `init.basis` becomes "file", because no other value
    would have an effect.
    """
    init = config.init
    if init.weights is None:
        for key in ("weights_digest", "reinitialize"):
            if getattr(init, key) is not None:
                raise ConfigError(
                    f"init.{key} is about a weights file: give the path of the file as "
                    "init.weights too"
                )
        if init.basis == FILE_START:
            raise ConfigError(
                f"init.basis is {FILE_START}, which belongs to init.weights: name the file there"
            )
        return config
    if init.basis == "given":
        raise ConfigError(
            "init.basis is given, which keeps the weights of the model, and init.weights takes "
            "those of a file: choose one"
        )
    found = hash_weights(init.weights)
    if init.weights_digest not in (None, found):
        raise ConfigError(
            f"{init.weights} holds other bytes than the weights file that is asked for: "
            f"expected {init.weights_digest}, got {found}. Give the path of that file"
        )
    changes = {"weights_digest": found}
    if init.reinitialize is None:
        if init.seed is not None or init.offset != 0:
            raise ConfigError(
                "init.seed and init.offset choose initial weights, and every tensor is taken from "
                "init.weights: leave them out, or name tensors in init.reinitialize"
            )
        return config.change(init={**changes, **_START_DEFAULTS, "basis": FILE_START})
    if init.basis == FILE_START:
        raise ConfigError(
            "init.reinitialize names tensors to initialize: choose how as init.basis, such as "
            "canonical_kaiming"
        )
    return config.change(init=changes)


def set_weights_path(config: Config, path: AnyPath | None) -> Config:
    """Return the configuration with another path of its weights file; None changes nothing."""
    return config if path is None else config.change(init={"weights": str(path)})


def hash_weights(path: AnyPath) -> str:
    """Return "sha256:..." of a weights file; a file of another kind is refused first."""
    hasher = hashlib.sha256()
    with open_weights(path) as file:
        try:
            while chunk := file.read(2**20):
                hasher.update(chunk)
        except OSError as problem:
            raise _refuse_path(path, problem.strerror) from None
    return f"sha256:{hasher.hexdigest()}"


def check_weights_exist(config: Config) -> None:
    """Refuse a weights file that is missing or a pickle; its tensors are not looked at."""
    if config.init.weights is not None:
        open_weights(config.init.weights).close()


def find_weights(path: AnyPath) -> Path:
    """Return the file itself: a link that the user named is followed, ~ is the home folder."""
    try:
        return Path(path).expanduser().resolve()
    except (OSError, RuntimeError, ValueError) as problem:  # a loop of links, no home, a NUL byte
        raise _refuse_path(path, str(problem)) from None


def has_weights(path: AnyPath) -> bool:
    """Whether there is a plain file at a path, which a stranger's configuration may name."""
    try:
        return find_weights(path).is_file()
    except (ConfigError, OSError):
        return False


def open_weights(given: AnyPath) -> IO[bytes]:
    """Open a weights file for reading, at its beginning; refuse a pickle and say how to convert.

    Nothing is unpickled: a pickle can execute any code when it is read.
    """
    path = find_weights(given)
    try:
        file = open_plain_file(path, MAX_WEIGHTS_BYTES, error=ConfigError)
    except OSError as problem:
        raise _refuse_path(given, problem.strerror) from None
    try:
        begins = file.read(9)
        file.seek(0)
    except OSError as problem:
        file.close()
        raise _refuse_path(given, problem.strerror) from None
    # A safetensors file begins with 8 bytes, the size of its header, which may look like a pickle's
    # first bytes; the header itself begins with a brace.
    is_pickle = begins.startswith(_PICKLES) and begins[8:] != b"{"
    if path.suffix.lower() in _PICKLE_SUFFIXES or is_pickle:
        file.close()
        raise ConfigError(
            f"{given}: expected a safetensors weights file, got a pickle, which can execute "
            "code when it is read. If you trust it, convert it once:\n"
            "  import torch, safetensors.torch\n"
            f"  state = torch.load({path.name!r}, weights_only=True)\n"
            "  safetensors.torch.save_file({name: value.clone().contiguous() for name, value in "
            f"state.items()}}, {f'{path.stem}.safetensors'!r})"
        )
    return file


def _refuse_path(path: AnyPath, reason: str | None) -> ConfigError:
    where, why = (escape_text(shorten(str(text))) for text in (path, reason))
    return ConfigError(
        f"{where}: expected a safetensors weights file, got none that can be read ({why}); "
        "init.weights is its path"
    )
