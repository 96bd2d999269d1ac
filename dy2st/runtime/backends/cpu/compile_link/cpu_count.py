"""How many threads native code uses where nobody has said: the CPUs that this process may use."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from dy2st import config


def usable_threads() -> int:
    """Return what `DY2ST_NUM_THREADS` or `OMP_NUM_THREADS` says, else how many CPUs this process may use.

    ValueError where `DY2ST_NUM_THREADS` is no whole number of at least 1.
    """
    return config.num_threads() or usable_cpus()


def usable_cpus(root: str = "/") -> int:
    """Return how many CPUs this process may use: those that it is bound to, within the quota of its control groups."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([bound, *(math.ceil(quota) for quota in _quotas(root))]))


def _quotas(root: str) -> Iterator[float]:
    """Yield the CPUs that each control group around this process grants, where it limits them."""
    for line in _text(os.path.join(root, "proc/self/cgroup")).splitlines():
        _, controllers, path = line.split(":", 2)
        folder = "" if not controllers else "cpu" if "cpu" in controllers.split(",") else None
        if folder is None:
            continue
        base = os.path.join(root, "sys/fs/cgroup", folder).rstrip("/")
        group = os.path.join(base, path.lstrip("/")).rstrip("/")
        while len(group) >= len(base):
            quota, period = _limit(group)
            if quota.isdigit() and period.isdigit() and int(period):
                yield int(quota) / int(period)
            group = os.path.dirname(group)


def _limit(group: str) -> tuple[str, str]:
    """Return the time that a group has in each period, and the period, as its files say in either version."""
    second, *rest = _text(os.path.join(group, "cpu.max")).split() or ("",)
    if rest:
        return second, rest[0]
    quota, period = (_text(os.path.join(group, f"cpu.cfs_{name}_us")) for name in ("quota", "period"))
    return quota.strip(), period.strip()


def _text(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            return file.read().decode(errors="replace")
    except OSError:
        return ""
