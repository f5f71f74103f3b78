"""Write docs/reference/published.md: ``python -m benchmarks.published [--evidence FOLDER]``.

The folder of published result files is SEEDLESS_EVIDENCE, by default shared/evidence beside the
repository.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from benchmarks.pages import DOCS, ROOT
from benchmarks.published.page import write_page


def main() -> None:
    """Read the folder named, write the page, and say where."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.published")
    default = os.environ.get("SEEDLESS_EVIDENCE", ROOT.parent / "shared" / "evidence")
    parser.add_argument("--evidence", type=Path, default=Path(default), metavar="FOLDER")
    evidence = parser.parse_args().evidence
    if not (evidence / "expected.json").is_file():
        parser.error(f"{evidence} holds no expected.json: name the folder of published results")
    page = DOCS / "reference" / "published.md"
    page.write_text(write_page(evidence), encoding="utf-8")
    print(f"wrote {page}")


if __name__ == "__main__":
    main()
