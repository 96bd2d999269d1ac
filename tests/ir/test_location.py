"""Which frames are the user's."""

import linecache
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

from dy2st.ir.location import is_user_frame, user_location
from tests.in_threads import in_threads


def user_modules() -> Iterator[str]:
    frame = sys._getframe()
    while frame is not None:
        if is_user_frame(frame):
            yield frame.f_globals["__name__"].partition(".")[0]
        frame = frame.f_back


def test_what_runs_the_users_code_is_not_the_users() -> None:
    found = {*user_modules()}
    assert "tests" in found
    assert not found & {"_pytest", "pluggy", "xdist", "execnet", "__channelexec__"}


def test_a_location_names_the_line_that_asks() -> None:
    place = user_location()
    assert place is not None
    assert (place.function, place.source()) == (
        "test_a_location_names_the_line_that_asks",
        "place = user_location()",
    )


def test_lines_of_long_functions_are_found_in_a_table() -> None:
    name, lines = "a_long_function.py", [f"    found.append(place())  # {i}" for i in range(700)]
    text = "\n".join(["def long(found, place):", *lines, ""])
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    space: dict[str, Any] = {"__name__": "somebodys"}
    exec(compile(text, name, "exec"), space)
    results: dict[int, list[int]] = {}

    def run(thread: int) -> None:
        found: list[Any] = []
        space["long"](found, user_location)
        results[thread] = [place.line for place in found]

    in_threads(*(partial(run, i) for i in range(3)))
    assert results == {i: list(range(2, 702)) for i in range(3)}
