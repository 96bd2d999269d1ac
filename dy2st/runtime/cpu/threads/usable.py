"""How many threads native code uses where nobody has said: the CPUs that this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

_NAMES = ("DY2ST_NUM_THREADS", "OMP_NUM_THREADS")


def usable_threads() -> int:
    """Return what `DY2ST_NUM_THREADS` or `OMP_NUM_THREADS` says, else how many CPUs this process may use.

    ValueError where `DY2ST_NUM_THREADS` is no whole number of at least 1.
    """
    own, common = (os.environ.get(name, "").strip() for name in _NAMES)
    if own:
        if not own.isdigit() or int(own) < 1:
            raise ValueError(f"{_NAMES[0]} is a whole number of at least 1, not {own!r}")
        return int(own)
    outermost = common.partition(",")[0].strip()  # OpenMP has a number for each level of nesting
    if outermost.isdigit() and int(outermost) >= 1:
        return int(outermost)
    return usable_cpus()


def usable_cpus(root: Path = Path("/")) -> int:
    """Return how many CPUs this process may use: those that it is bound to, within the quota of its control groups."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the CPUs that each control group around this process grants, where it limits them."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        folder = "" if not controllers else "cpu" if "cpu" in controllers.split(",") else None
        if folder is None:
            continue
        base = root / "sys/fs/cgroup" / folder
        group = base / path.lstrip("/")
        for at in (group, *group.parents):
            if not at.is_relative_to(base):
                break
            quota, period = _limit(at)
            if quota.isdigit() and period.isdigit() and int(period):
                yield int(quota) / int(period)


def _limit(group: Path) -> tuple[str, str]:
    """Return the time that a group has in each period, and the period, as its files say in either version."""
    second, *rest = _text(group / "cpu.max").split() or ("",)
    if rest:
        return second, rest[0]
    return _text(group / "cpu.cfs_quota_us").strip(), _text(group / "cpu.cfs_period_us").strip()


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
