"""The examples of docs/how-to/own-data.md run as they are written, one after the other."""

import importlib.util
import re
import sys

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how-to" / "own-data.md"
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    """From a file: functions without source text have no digest."""
    file = tmp_path / "own_data_page.py"
    file.write_text("\n\n".join(CODE.findall(PAGE.read_text())))
    monkeypatch.chdir(tmp_path)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    page = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, file.stem, page)
    spec.loader.exec_module(page)
    assert "sha256:" in capsys.readouterr().out
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"mine", "tuned", "recordings"}
