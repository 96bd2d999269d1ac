"""What `arange` takes as bounds."""

import pytest

import dy2st as paddle


def test_a_range_of_what_is_no_number():
    with pytest.raises(TypeError, match="a bound of a range is a number, not str 'a'"):
        paddle.arange("a")
