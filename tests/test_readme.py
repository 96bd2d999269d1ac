"""The README's example prints what the README says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = r"```{}\n(.*?)```"


def test_the_example_prints_what_the_readme_says(tmp_path: Path) -> None:
    text = README.read_text(encoding="utf-8")
    (source,) = re.findall(BLOCK.format("python"), text, re.DOTALL)
    (output,) = re.findall(BLOCK.format("text"), text, re.DOTALL)
    if output.strip() == "TODO":
        pytest.skip("the README's output is not written yet")
    example = tmp_path / "example.py"  # to_static reads the source of what it converts
    example.write_text(source)
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, timeout=60)
    assert (done.stderr, done.stdout) == ("", output)
