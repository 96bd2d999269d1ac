"""What an earlier process has kept on disk changes nothing: constructs pass again, in another process on one cache."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SHARE = "while or carr or swap or accumul or early"
"""Which of the constructs are run; `dev.py test --twice` runs the whole suite so."""


@pytest.mark.slow
def test_constructs_pass_again_on_what_was_kept(tmp_path):
    environment = os.environ | {"DY2ST_CACHE_DIR": str(tmp_path), "DY2ST_BACKEND": "native"}
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/jit/test_constructs.py",
        "-k",
        SHARE,
    ]
    for process in ("first", "later"):
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"in the {process} process\n{done.stdout[-4000:]}"
