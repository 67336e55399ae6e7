"""The README's example runs."""

import re
from pathlib import Path


def test_the_ten_lines(tmp_path, monkeypatch, capsys):
    readme = Path(__file__).parent.parent.joinpath("README.md").read_text()
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL).group(1)
    monkeypatch.chdir(tmp_path)
    shorter = code.replace("log10=-30", "log10=-1")  # the reader waits longer
    assert shorter != code
    exec(compile(shorter, "README.md", "exec"), {})
    assert "order 2" in capsys.readouterr().out
    assert (tmp_path / "runs" / "mine" / "history.jsonl").exists()
