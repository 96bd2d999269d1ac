"""Errors for names that a module has not: the hint is worded where it is shown, and travels with a pickle."""

import pickle
import traceback

import pytest

from dy2st.missing import NoAttribute, no_attribute


def test_near_misses_are_looked_for_where_the_error_is_shown():
    asked = []
    error = NoAttribute("module 'm' has no attribute 'x'", "x", lambda: (asked.append("x"), "no hint")[1])
    assert not asked
    assert str(error) == "module 'm' has no attribute 'x'; no hint"
    assert error.name == "x"
    assert asked == ["x"]


def test_a_traceback_names_the_error_of_python():
    error = no_attribute("m", "mathmul", ["matmul", "add"])
    shown = "".join(traceback.format_exception_only(error))
    assert shown == "AttributeError: module 'm' has no attribute 'mathmul'; did you mean 'matmul'?\n"


def test_an_error_that_was_pickled_says_the_same():
    error = no_attribute("m", "mathmul", ["matmul", "add"])
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(error).endswith("did you mean 'matmul'?")


@pytest.mark.parametrize(("name", "hint"), [("xpu_device", "not on that hardware"), ("sparse_csr", "to_sparse_coo")])
def test_what_is_not_here_at_all_is_named(name, hint):
    assert hint in str(no_attribute("m", name, []))
