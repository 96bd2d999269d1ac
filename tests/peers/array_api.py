"""Run the array API standard's own tests (data-apis/array-api-tests) on `dy2st.array_api`.

Their files stay outside of this repository. In an environment with dy2st's dependencies, pytest, hypothesis, ndindex
and pytest-json-report: `PYTHONPATH=. python tests/peers/array_api.py CHECKOUT [more arguments for pytest]`, where
CHECKOUT is one of array-api-tests with its submodule `array-api`. What array_api_exceptions.txt names may fail.

As a module this is the namespace under test.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
EXCEPTIONS = HERE / "array_api_exceptions.txt"
MISSING_DTYPES = "uint16,uint32,uint64"


def main() -> int:
    """Run the tests; return pytest's exit status, 0 where nothing fails but what may."""
    checkout, *more = sys.argv[1:]
    environment = {
        **os.environ,
        "ARRAY_API_TESTS_MODULE": "tests.peers.array_api",
        "ARRAY_API_TESTS_SKIP_DTYPES": MISSING_DTYPES,
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "array_api_tests"]
    command += ["--xfails-file", str(EXCEPTIONS), "--max-examples", "20", "--disable-deadline", *more]
    return subprocess.run(command, cwd=checkout, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())

from dy2st import array_api  # noqa: E402  (only as a module: the tests import this file as the namespace)
from dy2st.array_api import *  # noqa: E402, F403

globals().update({name: value for name, value in vars(array_api).items() if name != "__name__"})
