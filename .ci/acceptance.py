"""Run the acceptance scripts and hold the checks that are listed in acceptance-held.txt.

    .venv/bin/python .ci/acceptance.py ../shared/acceptance

Prints what every script prints, then the listed checks that do not hold (exit status 1), then the checks that hold
and are not listed yet, ready to be added. All of it runs a second time, in which every Program is called four times
with changed inputs beside eager mode (`DY2ST_VERIFY_CALLS`), and must hold then, too.
"""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

HELD = Path(__file__).with_name("acceptance-held.txt")
HOLDS = re.compile(r"^ok +(?P<script>\S+) (?P<title>.+?) \(\d+\.\d+ s\)", re.MULTILINE)
SECONDS_PER_SCRIPT = 180


def main() -> int:
    """Compare what holds with what is listed."""
    folder = Path(sys.argv[1]).resolve()
    listed = read_held(HELD.read_text())
    scripts = [path.stem for path in sorted(folder.glob("*.py")) if path.stem != "run"]
    holding = [line for script in scripts for line in run_script(folder, script)]
    print("again, with the first calls verified", flush=True)
    verified = [line for script in scripts for line in run_script(folder, script, {"DY2ST_VERIFY_CALLS": "1"})]
    lost = [line for line in listed if line not in holding or line not in verified]
    gained = [line for line in holding if line not in listed]
    print(f"acceptance: {len(holding)} checks hold, {len(listed)} are listed, {len(lost)} of these do not hold")
    for line in gained:
        print(f"new, add to {HELD.name}: {line}")
    for line in lost:
        print(f"LOST {line}")
    return 1 if lost else 0


def read_held(text: str) -> list[str]:
    """Return the lines of the list, less comments and empty lines."""
    return [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#")]


def run_script(folder: Path, script: str, settings: Mapping[str, str] = MappingProxyType({})) -> list[str]:
    """Run one acceptance script in a process of its own; print what it said, and name the checks that hold."""
    command = [sys.executable, str(folder / "run.py"), script, "--timeout", str(SECONDS_PER_SCRIPT)]
    environment = {**os.environ, "PYTHONPATH": str(HELD.parents[1]), **settings}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=SECONDS_PER_SCRIPT + 30)
    lines = [line for line in done.stdout.splitlines() if " of 1 scripts hold" not in line]
    print("\n".join(lines), flush=True)
    if not any(line.startswith(f"{script}: ") for line in lines):  # it ended before its first check
        print(f"{script} did not run: {done.stderr.strip().splitlines()[-1:] or 'no reason given'}")
    return [f"{match['script']}: {match['title']}" for match in HOLDS.finditer(done.stdout)]


if __name__ == "__main__":
    sys.exit(main())
