"""The scripts that compare with PaddlePaddle, where an interpreter that has it is named."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTHON = os.environ.get("PADDLE_PYTHON", "")


@pytest.mark.soak
@pytest.mark.skipif(not PYTHON, reason="PADDLE_PYTHON names no Python with paddlepaddle: docs/peers/paddle.md")
@pytest.mark.parametrize("script", ["paddle_values.py", "paddle_programs.py"])
def test_every_difference_has_a_reason(script: str) -> None:
    done = subprocess.run(
        [PYTHON, "-W", "ignore", str(ROOT / "tests" / "peers" / script)], capture_output=True, text=True, timeout=900,
        env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
