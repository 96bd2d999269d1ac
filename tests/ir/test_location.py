"""Which frames are the user's."""

import sys
from collections.abc import Iterator

from dy2st.ir.location import is_user_frame, user_location


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
