"""What a receipt states of the machine and the source code: does it have the form that runs write?

Any version, processor or GPU may be named, and only executing the run again can contradict it. But
everything that prints or compares these values relies on their form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from seedless.core.config import Config
from seedless.core.mismatch import is_same_json

_SOURCE = {"name", "version", "digest"}


def check_environment(claims: Mapping[str, Any], config: Config) -> list[str]:
    """Return what is wrong with the environment and the source of a receipt, a sentence each."""
    environment, source, problems = claims["environment"], claims["source"], []
    if not is_same_json(environment["threads"]["intraop"], config.execution.threads):
        problems.append("the threads of the environment are not those of config.toml")
    # They become those of the process that executes the run: a NUL or a huge one would stop it.
    values = environment["variables"].values()
    if not all(isinstance(text, str) and re.fullmatch("[ -~]{0,500}", text) for text in values):
        problems.append("the variables of the environment are not short texts of one line")
    if not is_environment(environment):
        problems.append(
            "the environment does not state versions, a processor and devices as runs do"
        )
    elif config.execution.device == "cuda" and not environment["devices"]:
        problems.append("config.toml names a CUDA device, and the environment has none")
    if claims.get("processes", {"count": 1}) != {"count": 1} and not config.is_portable:
        problems.append("the receipt names several processes, and native arithmetic allows one")
    if not is_source(source):
        problems.append("the receipt does not state name, version and digest of the source code")
    return problems


def is_environment(value: Mapping[str, Any]) -> bool:
    """Whether the parts that others read have the form of `capture_environment`."""
    cpu, devices = value.get("cpu"), value.get("devices")
    return (
        isinstance(value.get("python"), str)
        and _is_texts(value.get("packages"))
        and isinstance(cpu, dict)
        and isinstance(cpu.get("model"), str)
        and isinstance(devices, list)
        and all(isinstance(one, dict) and isinstance(one.get("name"), str) for one in devices)
    )


def is_source(value: Any) -> bool:
    """Whether a value states name, version and digest of source code."""
    return _is_texts(value) and {*value} == _SOURCE


def _is_texts(value: Any) -> bool:
    """Whether a value is a mapping of names to texts."""
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
