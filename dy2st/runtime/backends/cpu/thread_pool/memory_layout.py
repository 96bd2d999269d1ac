"""Where the fields of the pool stand in its memory, in bytes. What different threads write is 128 bytes apart.

   0 threads that there are to be    8 workers made    16 whether they are to end
  24 work that those who sleep have missed
 128 whether somebody has the pool
 256 number of the job, which workers wait to see changed
 384 how many workers sleep
 512 how many are inside of the job, and OPEN while one may enter
 640 the job: its body, its arguments, how many units a part has, how many threads it is for
1024 for each thread of the job, where its range goes on and where it ends; then the handles of the workers
"""

from __future__ import annotations

MOST = 256
"""How many threads a job has at most."""
OPEN = 1 << 32
FIELDS = {
    "threads": 0, "workers": 8, "quit": 16, "missed": 24, "cpu": 32, "distrust": 40, "debt": 48,
    "busy": 128,
    "epoch": 256,
    "sleepers": 384,
    "state": 512, "waiting": 576,
    "body": 640, "row": 648, "part": 656, "team": 664,
    "ranges": 1024,
}  # fmt: skip
RANGE_BYTES = 128
HANDLES = FIELDS["ranges"] + RANGE_BYTES * MOST
BYTES = HANDLES + 8 * MOST


def place(name: str) -> str:
    """Return a field of the pool as LLVM writes its address."""
    return f"getelementptr (i8, ptr @pool, i64 {FIELDS[name]})"


PLACES = {name: place(name) for name in FIELDS}
