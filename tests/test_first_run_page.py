"""The first tutorial: its script prints the digest of the page, and its commands what it shows."""

import re

from tests.conftest import ROOT

PAGE = (ROOT / "docs" / "tutorial" / "first-run.md").read_text()


def test_the_script_prints_the_digest_of_the_page(run_python, tmp_path):
    script = tmp_path / "mine.py"
    code = next(
        code for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL) if "fit" in code
    )
    script.write_text(code.replace('"runs/a"', repr(str(tmp_path / "a"))))
    assert run_python(str(script)).stdout.strip() in PAGE
