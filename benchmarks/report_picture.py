"""The picture of a report in the README: a run of the demonstration, its page, Chromium.

python -m benchmarks.report_picture       docs/assets/report.png
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.pages import DOCS

PICTURE = DOCS / "assets" / "report.png"
WIDTH, HEIGHT = 1200, 720


def main() -> None:
    """Train the demonstration's network, write its report, and photograph the top of it."""
    browser = shutil.which("chromium")
    if browser is None:
        raise SystemExit("chromium is needed: make browser")
    with tempfile.TemporaryDirectory() as folder:
        run, page = Path(folder) / "demo", Path(folder) / "report.html"
        program = [sys.executable, "-m", "seedless"]
        subprocess.run([*program, "train", "demo", "--out", run], check=True)
        subprocess.run([*program, "report", run, "--out", page], check=True)
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        size = f"--window-size={WIDTH},{HEIGHT}"
        command = [browser, *options, size, f"--screenshot={PICTURE}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
    print(PICTURE)


if __name__ == "__main__":
    main()
