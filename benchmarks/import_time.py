"""What `import` costs in a fresh process, measured inside it."""

import subprocess
import sys
from collections.abc import Callable

from harness import Goal, Job, Row


def importing(module: str) -> Callable[[], Job]:
    """Make a candidate that imports a module in a new process and returns the seconds that took."""
    code = f"import time; start = time.perf_counter(); import {module}; print(time.perf_counter() - start)"

    def seconds() -> float:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        if "ModuleNotFoundError" in done.stderr:
            raise ModuleNotFoundError(done.stderr, name=module)
        done.check_returncode()
        return float(done.stdout)

    def prepare() -> Job:
        seconds()  # a first run, so that the files are in memory and bytecode is written
        return seconds

    return prepare


ROWS = (
    Row(
        "import in a fresh process",
        {module: importing(module) for module in ("numpy", "dy2st", "torch", "jax", "paddle")},
        Goal("import dy2st beyond import numpy", lambda median: median["dy2st"] - median["numpy"], 0.150),
        repeats=9,
        reports_seconds=True,
    ),
)
