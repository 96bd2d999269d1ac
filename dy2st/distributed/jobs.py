"""Jobs: a command in several processes, by MPI's `mpiexec`; it starts them and ends all of them when one dies."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence

from dy2st.errors import MissingExtraError
from dy2st.ops.collective.world import LAST_WORDS, notes_in

SPAWNED = "--function"
"""What a worker is told in place of a script."""
_BANNER = ("=====", "=   ", "YOUR APPLICATION TERMINATED", "This typically", "Please see the FAQ")
"""How lines begin that MPI's launcher writes of a job that failed."""


def run_job(command: Sequence[str], count: int, environment: dict[str, str]) -> int:
    """Run a command in several processes; say which rank was killed, if one was; return the exit code."""
    folder = tempfile.mkdtemp(prefix="dy2st-job-")
    try:
        whole = [mpiexec(), "-n", str(count), *command]
        told = {**environment, "DY2ST_JOB_FOLDER": folder}
        banner: list[str] = []
        with subprocess.Popen(whole, env=told, stdout=subprocess.PIPE, text=True, errors="replace", bufsize=1) as job:
            for line in job.stdout or ():
                if line.startswith(_BANNER):
                    banner.append(line)
                else:
                    sys.stdout.write(line)
                    sys.stdout.flush()
            code = job.wait()
        if os.path.exists(said := os.path.join(folder, LAST_WORDS)):
            with open(said, errors="replace") as file:
                print(file.read(), end="", file=sys.stderr, flush=True)
        elif code:
            _say_who_died("".join(banner), os.path.join(folder, "notes"))
        return code
    finally:
        shutil.rmtree(folder)


def mpiexec() -> str:
    """Return the path of `mpiexec`: that of this environment, else that of the PATH; MissingExtraError without one."""
    own = os.path.join(sysconfig.get_path("scripts"), "mpiexec")
    found = own if os.path.exists(own) else shutil.which("mpiexec")
    if found is None:
        raise MissingExtraError("mpich", "mpi", "a job of several processes")
    return found


def _say_who_died(banner: str, notes: str) -> None:
    """Name the rank whose process MPI's launcher found dead, and what it did last."""
    found = re.search(r"PID (\d+)", banner)
    if found is None or not os.path.exists(notes):
        sys.stderr.write(banner)
        return
    with open(notes, "rb") as file:
        ranks = notes_in(file.read())
    signal = re.search(r"STRING: (.*)", banner)
    for rank, (pid, doing) in enumerate(ranks):
        if pid == int(found[1]) and not doing.startswith("raised"):
            how = signal[1] if signal else "an exit without a word"
            print(f"launch: rank {rank} (process {pid}) died: {how}; it {doing}", file=sys.stderr, flush=True)
