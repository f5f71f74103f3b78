"""Pages written from recorded results, so that no figure in them is typed by hand."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs"

Record = Mapping[str, Any]


def read_records(folder: Path = RESULTS) -> dict[str, Record]:
    """Return every recorded result by the name of its file, with its command and environment."""
    files = sorted(folder.glob("*.json"))
    return {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in files}


def describe(record: Record) -> str:
    """Return the machine and the command of a record, in one line."""
    environment = record["environment"]
    devices = environment["devices"]
    place = devices[0]["name"] if devices else environment["cpu"]["model"]
    threads, torch = environment["threads"]["intraop"], environment["packages"]["torch"]
    plural = "" if threads == 1 else "s"
    return f"{place}, {threads} thread{plural}, torch {torch}; `{record['command']}`"


def render(template: str, **values: Any) -> str:
    """Return a page from a file in benchmarks/templates."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # the pages are Markdown
    )
    environment.filters["describe"] = describe
    environment.filters["number"] = lambda value, form: format(value, form)
    return environment.get_template(template).render(**values)
