"""How much of Paddle's surface is here: the lists of what is not may only shrink."""

import pytest

import dy2st as paddle
from dy2st.missing import missing_in, no_attribute
from tests.surface import is_here, lacking_arguments, listed_arguments, resolve, tier, unread_arguments
from tests.surface_gaps import HARMLESS, MISSING, OTHER_ARGUMENTS
from tests.values.proven import proven_names

TIER_1, TIER_2 = tier(1), tier(2)


def test_the_table_is_whole():
    assert (len(TIER_1), len(TIER_2)) == (263, 1354)


@pytest.mark.parametrize("name", TIER_1, ids=str)
def test_a_name_that_users_need_is_here_with_its_arguments(name):
    assert is_here(name.path)
    assert lacking_arguments(name) == [] or name.path in OTHER_ARGUMENTS


def test_most_other_names_are_here():
    assert sum(is_here(name.path) for name in TIER_2) >= 1235


def test_most_names_have_their_values_tested():
    assert sum(name.path in proven_names() for name in TIER_2) >= 1235
    assert sum(name.path in proven_names() for name in TIER_1) == 263


def test_what_is_proven_is_here():
    assert sorted(name for name in proven_names() if not is_here(name)) == []


def test_what_is_missing_is_listed_with_a_reason():
    """A name that came to be is taken off the list, so the list only shrinks."""
    missing = {name.path for name in (*TIER_1, *TIER_2) if not is_here(name.path)}
    assert sorted(missing - MISSING.keys()) == [], "these were here once; or give the reason in surface_gaps.py"
    assert sorted(MISSING.keys() - missing) == [], "these are here now; take them off the list"


def test_what_has_other_arguments_is_listed_with_a_reason():
    here = [name for name in (*TIER_1, *TIER_2) if name.path not in MISSING]
    other = {name.path for name in here if lacking_arguments(name)}
    assert sorted(other ^ OTHER_ARGUMENTS.keys()) == []


@pytest.mark.slow
def test_no_argument_is_ignored_unless_that_is_harmless():
    ignored: dict[str, list[str]] = {}
    for name in (n for n in (*TIER_1, *TIER_2) if is_here(n.path)):
        positional, keywords = listed_arguments(name.signature) or ([], [])
        known = {*positional, *keywords} - {"x"}
        if left := [a for a in unread_arguments(name.path) if a in known and a not in HARMLESS]:
            ignored[name.path] = left
    assert ignored == {}


@pytest.mark.parametrize("path", [p for p in MISSING if not p.startswith("paddle.Tensor.")])
def test_a_missing_name_raises_attribute_error_with_a_hint(path):
    with pytest.raises(AttributeError, match=r"has no attribute .*(did you mean|lists the names|to_sparse_coo)"):
        resolve(path)


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("paddle.mathmul", "did you mean 'matmul'"),
        ("paddle.nn.Linaer", "did you mean 'Linear'"),
        ("paddle.nn.functional.reluu", "did you mean 'relu'"),
        ("paddle.linalg.multidot", "did you mean 'multi_dot'"),
        ("paddle.static.Exekutor", "did you mean 'Executor'"),
        ("paddle.tensor.mathmul", "did you mean 'matmul'"),
        ("paddle.zzzz", r"dir\(dy2st\) lists the names there are"),
    ],
)
def test_an_unknown_name_has_a_hint(path, hint):
    with pytest.raises(AttributeError, match=hint):
        resolve(path)


@pytest.mark.parametrize("name", ["XPUPlace", "NPUPlace", "CustomPlace", "set_xpu_device"])
def test_names_of_other_hardware_say_that_it_is_not_here(name):
    with pytest.raises(AttributeError, match=r"runs on CPUs and CUDA devices, not on that hardware"):
        getattr(paddle, name)


def test_a_private_name_gets_no_hint():
    with pytest.raises(AttributeError, match=r"module 'dy2st\.missing' has no attribute '_no_attribut'$"):
        missing_in("dy2st.missing")("_no_attribut")
    assert "did you mean" in str(no_attribute("m", "no_attribut", ["no_attribute"]))
