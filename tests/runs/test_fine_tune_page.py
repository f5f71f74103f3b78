"""The examples of docs/how-to/fine-tune.md run as they are written, one after the other."""

import re

from tests.conftest import ROOT

PAGE = ROOT / "docs" / "how-to" / "fine-tune.md"
CODE = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_the_examples_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(compile("\n\n".join(CODE.findall(PAGE.read_text())), str(PAGE), "exec"), {})
    printed = capsys.readouterr().out
    assert "base.safetensors sha256:" in printed
    assert "7 tensors taken, ['3.bias', '3.weight'] initialized" in printed
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"base", "tuned", "frozen"}
    assert (tmp_path / "model.safetensors").exists()
