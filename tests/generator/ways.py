"""The ways in which random programs are run: what a process is started with, which tells the tier and the kind of code.

`auto` is what users have: the interpreter at the first call, native code from the second on, better code later.
`again` is a second process on the first one's cache; the others run on caches of their own.
"""

import os
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Way:
    """A kind of process."""

    name: str
    variables: dict[str, str] = field(default_factory=dict)
    after: str = ""
    """The way whose cache folder it goes on with."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return what a program that is called in this way three times has been through."""
        return (self.name, *FIRST_CALLS) if self.variables.get("DY2ST_BACKEND") == "native" else (self.name,)


FIRST_CALLS = ("native-1", "native-2", "native-3")
WAYS = {
    way.name: way
    for way in (
        Way("auto", {"DY2ST_BACKEND": "auto"}),
        Way("again", {"DY2ST_BACKEND": "auto"}, after="auto"),
        Way("interpreter", {"DY2ST_BACKEND": "interpreter"}),
        Way("guarded", {"DY2ST_BACKEND": "native", "DY2ST_GUARD": "1", "DY2ST_NUM_THREADS": "2"}),
        Way("one-thread", {"DY2ST_BACKEND": "native", "DY2ST_NUM_THREADS": "1"}),
        Way("two-threads", {"DY2ST_BACKEND": "native", "DY2ST_NUM_THREADS": "2"}),
        Way("avx2", {"DY2ST_BACKEND": "native", "DY2ST_CPU": "avx2"}),
        Way("sse", {"DY2ST_BACKEND": "native", "DY2ST_CPU": "sse"}),
        Way("scalar", {"DY2ST_BACKEND": "native", "DY2ST_CPU": "scalar"}),
        Way("strict", {"DY2ST_STRICT": "1"}),
        Way("eager-native", {"DY2ST_EAGER_NATIVE": "0", "DY2ST_EAGER_PROGRAMS": "1"}),
        Way("eager-tape", {"DY2ST_TAPE_WALKS": "0"}),
    )
}
LATER, LOADED = "native-60", "loaded"
COLUMNS = (*WAYS, *FIRST_CALLS, LATER, LOADED)
"""In what a statement must have been run."""
TURNS = (
    ("auto", "again"), ("interpreter",), ("guarded",), ("avx2",), ("auto",), ("one-thread",), ("sse",), ("scalar",),
    ("two-threads",), ("strict",), ("eager-native",), ("eager-tape",),
)  # fmt: skip
"""The ways of each chunk of programs, in turn: other programs find more than the same ones in another way."""


def environment(way: Way, cache: str) -> dict[str, str]:
    """Return the variables of a process that runs programs this way, with its cache in that folder."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DY2ST_")}
    return {**inherited, "DY2ST_CACHE_DIR": cache, "PYTHONWARNINGS": "ignore", **way.variables}


def ways_of(chunk: int, *, every: bool) -> list[Way]:
    """Return the ways of a chunk of programs, or every one."""
    return list(WAYS.values()) if every else [WAYS[name] for name in TURNS[chunk % len(TURNS)]]
