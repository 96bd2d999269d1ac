"""`python -m dy2st.distributed.launch --nproc_per_node N train.py ...`: a script in several processes, by `mpiexec`.

Each process imports MPI before the script begins, so that one that fails at its first line ends the others too.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from dy2st.distributed.jobs import run_job


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a script in several processes; return the exit code of the job."""
    parser = argparse.ArgumentParser(prog="dy2st.distributed.launch", description=__doc__)
    parser.add_argument("--nproc_per_node", "--nproc-per-node", type=int, default=1, help="how many processes")
    parser.add_argument("--max-restarts", "--max_restarts", type=int, default=0,
                        help="how often a job that failed begins anew")  # fmt: skip
    parser.add_argument("--timeout", type=int, help="seconds that a rank waits for others before it ends the job")
    parser.add_argument("script", help="the script; what follows are its arguments")
    parser.add_argument("rest", nargs=argparse.REMAINDER)
    chosen = parser.parse_args(arguments)
    if chosen.nproc_per_node < 1:
        parser.error(f"a job has at least one process, not {chosen.nproc_per_node}")
    if chosen.max_restarts < 0:
        parser.error(f"a job begins anew so many times or never (0), not {chosen.max_restarts}")
    if not os.path.exists(chosen.script):
        parser.error(f"there is no script {chosen.script}")
    environment = dict(os.environ)
    if chosen.timeout is not None:
        environment["DY2ST_COLLECTIVE_TIMEOUT"] = str(chosen.timeout)
    command = [sys.executable, "-m", "dy2st.distributed.worker", chosen.script, *chosen.rest]
    code = 0
    for attempt in range(chosen.max_restarts + 1):
        environment["DY2ST_RESTARTS"] = str(attempt)
        code = run_job(command, chosen.nproc_per_node, environment)
        if code == 0 or attempt == chosen.max_restarts:
            break
        print(f"launch: the job ended with exit code {code}: it begins anew", file=sys.stderr, flush=True)
    return code


if __name__ == "__main__":
    sys.exit(main())
