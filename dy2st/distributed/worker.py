"""What `launch` and `spawn` run in each process: join the others, then run a script, or a function from a file."""

from __future__ import annotations

import multiprocessing.spawn
import pickle
import runpy
import sys

from dy2st.distributed.jobs import SPAWNED
from dy2st.distributed.parallel import init_parallel_env


def main() -> None:
    """Run what the arguments name."""
    init_parallel_env()
    name, *rest = sys.argv[1:]
    if name != SPAWNED:
        sys.argv[:] = [name, *rest]
        sys.path[0] = name.rpartition("/")[0] or "."
        runpy.run_path(name, run_name="__main__")
        return
    with open(rest[0], "rb") as file:
        multiprocessing.spawn.prepare(pickle.load(file))  # type: ignore[attr-defined]
        function, arguments = pickle.load(file)
    function(*arguments)


if __name__ == "__main__":
    main()
