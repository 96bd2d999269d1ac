"""Brackets against NumPy: every form, alone and mixed; what is inferred; errors that name index, axis and extent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.dtypes import float64, int64, of_array
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import lookup
from dy2st.ir.types import ScalarType, TensorType
from dy2st.ops.core.base import Op
from dy2st.ops.core.index_spec import at_least, is_basic, key
from dy2st.shapes import symbol
from tests.ops.evaluate import run
from tests.shares import examples

N = symbol("N")
WHOLE = ("slice", None, None, None)


def compute(name, *operands, **attributes):
    return lookup(name).eval(np, *operands, **attributes)


def types_of(operands):
    return [TensorType(of_array(o), o.shape) if isinstance(o, np.ndarray) else ScalarType("int", o) for o in operands]


@st.composite
def indices(draw):
    """Draw a shape, and a spec with operands that NumPy accepts for it."""
    shape = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    common = tuple(draw(st.lists(st.integers(1, 3), max_size=2)))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    bound = st.none() | st.integers(-5, 5)
    spec, operands, axis, masked = [], [], 0, False
    while axis < len(shape) and draw(st.integers(0, 5)):
        kind = draw(st.sampled_from(["int", "slice", "new", "tensor", "mask"]))
        extent = shape[axis]
        if kind == "new":
            spec.append(("new",))
            continue
        if kind == "mask":
            span = draw(st.integers(1, len(shape) - axis))
            mask = np.zeros(shape[axis : axis + span], bool)
            mask.reshape(-1)[rng.integers(mask.size)] = True  # one place: it broadcasts with any index tensor
            if not masked and draw(st.booleans()) and not common:
                mask |= rng.integers(0, 2, size=mask.shape) > 0
                masked = True
            spec.append(("mask",))
            operands.append(mask)
            axis += span
            continue
        if kind == "int":
            k = draw(st.integers(-extent, extent - 1))
            runtime = draw(st.booleans())
            spec.append(("int", "?" if runtime else k))
            operands += [k] if runtime else []
        elif kind == "tensor":
            own = tuple(e if rng.integers(2) else 1 for e in common[rng.integers(len(common) + 1) :])
            spec.append(("tensor",))
            operands.append(np.asarray(rng.integers(-extent, extent, size=own)))
        else:
            parts = [draw(bound), draw(bound), draw(st.sampled_from([None, 1, 2, -1, -3]))]
            hidden = [p is not None and draw(st.booleans()) for p in parts]
            spec.append(("slice", *("?" if h else p for h, p in zip(hidden, parts, strict=True))))
            operands += [p for h, p in zip(hidden, parts, strict=True) if h]
        axis += 1
    return shape, tuple(spec), tuple(operands)


def plain(spec, operands):
    """The brackets as NumPy takes them, made without the code under test."""
    rest, made = iter(operands), []
    for item in spec:
        if item[0] == "slice":
            made.append(slice(*(next(rest) if p == "?" else p for p in item[1:])))
        elif item[0] == "new":
            made.append(None)
        else:
            made.append(item[1] if item[0] == "int" and item[1] != "?" else next(rest))
    return tuple(made)


@settings(max_examples=examples(300), deadline=None)
@given(indices())
def test_index_set_and_add_do_what_numpy_does(case):
    shape, spec, operands = case
    x = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    try:
        want = np.asarray(x[plain(spec, operands)])
    except IndexError:
        return  # several masks of which none broadcasts
    got = compute("index", x, *operands, spec=spec)
    assert isinstance(got, np.ndarray)
    np.testing.assert_array_equal(got, want)
    value = np.random.default_rng(0).normal(size=want.shape)
    written, added = x.copy(), x.copy()
    written[plain(spec, operands)] = value
    np.add.at(added, plain(spec, operands), value)
    np.testing.assert_array_equal(compute("index_set", x, value, *operands, spec=spec), written)
    np.testing.assert_allclose(compute("index_add", x, value, *operands, spec=spec), added, rtol=1e-12)


@settings(max_examples=examples(300), deadline=None)
@given(indices())
def test_the_inferred_shape_is_that_of_the_result(case):
    shape, spec, operands = case
    x = np.zeros(shape)
    try:
        want = x[plain(spec, operands)].shape
    except IndexError:
        return
    got = lookup("index").infer(TensorType(float64, shape), *types_of(operands), spec=spec).shape
    assert len(got) == len(want)
    assert all(g in (None, w) for g, w in zip(got, want, strict=True))
    if not any(item[0] == "mask" for item in spec):
        assert got == want


@settings(max_examples=examples(100), deadline=None)
@given(indices())
def test_the_last_of_repeated_places_is_the_one_that_stays(case):
    shape, spec, operands = case
    x = np.zeros(shape)
    try:
        order = np.arange(float(x[plain(spec, operands)].size)).reshape(x[plain(spec, operands)].shape)
    except IndexError:
        return
    x[plain(spec, operands)] = order
    got = compute("index_last", x, *operands, spec=spec)
    np.testing.assert_array_equal(got, x[plain(spec, operands)] == order)


@pytest.mark.parametrize(
    ("parts", "want"),
    [
        ((None, None, None), N),
        ((0, None, 1), N),
        ((None, None, -1), N),
        ((None, None, 2), (N + 1) // 2),
        ((None, N, None), N),
        ((1, None, None), None),
        ((None, -1, None), None),
        ((None, 3, None), None),
        ((None, 0, None), 0),
        ((None, None, -2), (N + 1) // 2),
        ((3, 1, -1), None),
    ],
)
def test_symbolic_slices_keep_what_can_be_proved(parts, want):
    operands = [ScalarType("int", p) for p in parts if isinstance(p, type(N))]
    item = ("slice", *("?" if isinstance(p, type(N)) else p for p in parts))
    got = lookup("index").infer(TensorType(float64, (N,)), *operands, spec=(item,))
    assert got.shape == (want,)


def test_slices_of_a_long_enough_symbolic_axis_are_exact():
    x = TensorType(float64, (N + 2,))
    infer = lookup("index").infer
    assert infer(x, spec=(("slice", 1, None, None),)).shape == (N + 1,)
    assert infer(x, spec=(("slice", 1, -1, None),)).shape == (N,)
    assert infer(x, ScalarType("int"), spec=(("slice", "?", None, None),)).shape == (None,)


def test_index_tensors_of_symbolic_shape_are_broadcast():
    infer, x = lookup("index").infer, TensorType(float64, (4, N))
    rows, one = TensorType(int64, (N, 1)), TensorType(int64, (3,))
    assert infer(x, rows, one, spec=(("tensor",), ("tensor",))).shape == (N, 3)
    assert infer(x, rows, spec=(WHOLE, ("tensor",))).shape == (4, N, 1)
    other = TensorType(int64, (symbol("M"), 1))
    assert infer(x, rows, other, spec=(("tensor",), ("tensor",))).shape == (None, 1)


def test_at_least_trusts_that_extents_are_not_negative():
    assert at_least(N * 2 + 1, 1)
    assert not at_least(N - symbol("M"), 0)
    assert at_least(3, 3)


@pytest.mark.parametrize(
    ("spec", "operands", "text"),
    [
        ((("int", 2),), (), "index 2 is out of range for axis 0 of extent 2"),
        ((WHOLE, ("int", "?")), (-4,), "index -4 is out of range for axis 1 of extent 3"),
        ((("new",), WHOLE, ("tensor",)), (np.array([0, 7]),), "index 7 is out of range for axis 1 of extent 3"),
        ((("tensor",),), (np.array([0, -3]),), "index -3 is out of range for axis 0 of extent 2"),
        ((("mask",),), (np.ones(5, bool),), "a mask of extent 5 does not fit axis 0 of extent 2"),
        ((WHOLE, WHOLE, ("int", 0)), (), "too many indices for a tensor of rank 2"),
    ],
)
def test_an_index_out_of_range_names_index_axis_and_extent(spec, operands, text):
    x = np.zeros((2, 3))
    with pytest.raises(IndexError, match=f"index: {text}"):
        compute("index", x, *operands, spec=spec)
    with pytest.raises(IndexError, match=f"index_set: {text}"):
        compute("index_set", x, np.array(1.0), *operands, spec=spec)
    with pytest.raises(IndexError, match=f"index_add: {text}"):
        compute("index_add", x, np.array(1.0), *operands, spec=spec)


@pytest.mark.parametrize(
    ("spec", "operands", "error", "text"),
    [
        ((WHOLE, WHOLE, ("int", 0)), (), IndexError, "too many indices for a tensor of rank 2"),
        ((("mask",),), (TensorType(float64, (2,)),), IndexError, "a mask must be a bool tensor, not float64"),
        ((("mask",),), (TensorType(of_array(np.zeros(1, bool)), (3,)),), IndexError, "a mask of extent 3 does not fit"),
        ((("tensor",),), (TensorType(float64, (2,)),), IndexError, "an integer or bool tensor, not float64"),
        ((("slice", None, None, 0),), (), ValueError, "slice step cannot be zero"),
        (
            (("tensor",), ("tensor",)),
            (TensorType(int64, (2,)), TensorType(int64, (3,))),
            IndexError,
            "index tensors cannot be broadcast together: extents 2 and 3",
        ),
    ],
)
def test_types_that_cannot_index_are_refused(spec, operands, error, text):
    with pytest.raises(error, match=text):
        lookup("index").infer(TensorType(float64, (2, 3)), *operands, spec=spec)


@pytest.mark.parametrize("name", ["index_set", "index_add"])
def test_values_that_do_not_fit_are_refused(name):
    x, spec = TensorType(float64, (2, 3)), (("int", 0),)
    with pytest.raises(ValueError, match=r"a value of shape \[2\] does not fit the indexed shape \[3\]"):
        lookup(name).infer(x, TensorType(float64, (2,)), spec=spec)
    with pytest.raises(ValueError, match=r"a value of shape \[2\] does not fit the indexed shape \[3\]"):
        compute(name, np.zeros((2, 3)), np.zeros(2), spec=spec)
    with pytest.raises(TypeError, match="needs a value of the tensor's dtype, not int64 for float64"):
        lookup(name).infer(x, TensorType(int64, (3,)), spec=spec)


def test_indexing_leaves_the_operand_alone_and_writes_in_place_on_demand():
    x, spec = np.zeros((2, 3)), (("int", 0),)
    out = compute("index_set", x, np.array(1.0), spec=spec)
    assert not x.any()
    assert out.sum() == 3
    assert lookup("index_add").eval_in_place(np, x, np.array(2.0), spec=spec) is x
    np.testing.assert_array_equal(x, [[2, 2, 2], [0, 0, 0]])


def test_empty_index_tensors_and_empty_tensors():
    x, none = np.zeros((3, 2)), np.zeros(0, np.int64)
    assert compute("index", x, none, spec=(("tensor",),)).shape == (0, 2)
    np.testing.assert_array_equal(compute("index_add", x, np.zeros((0, 2)), none, spec=(("tensor",),)), x)
    assert compute("index", np.zeros((0, 2)), spec=(WHOLE, ("int", 1))).shape == (0,)


@pytest.mark.parametrize(
    ("name", "attributes", "operands"),
    [
        ("index", {"spec": (("int", 1), ("slice", 0, "?", None))}, (2,)),
        ("reshape", {"shape": (4, 3)}, ()),
        ("transpose", {"perm": (2, 0, 1)}, ()),
        ("expand_dims", {"axes": (0, 2)}, ()),
        ("squeeze", {"axes": (1,)}, ()),
    ],
)
def test_unview_gives_the_base_in_which_the_view_has_the_new_value(name, attributes, operands):
    base = np.arange(12.0).reshape((4, 1, 3) if name == "squeeze" else (2, 2, 3))
    op = lookup(name)
    assert op.makes_view(**attributes)
    want = base.copy()
    view = op.eval(np, want, *operands, **attributes)
    new = np.random.default_rng(0).normal(size=view.shape)
    view[...] = new
    b = Builder()
    arguments = [b.argument(TensorType(float64, base.shape)), b.argument(TensorType(float64, new.shape))]
    scalars = [b.scalar(o) for o in operands]
    b.block.results = [op.unview(b, *arguments, scalars, **attributes)]
    np.testing.assert_array_equal(run(b.block, [base, new])[0], want)


def test_an_op_that_gives_views_must_say_how_to_write_them_back():
    parts = {"name": "odd", "is_view": True, "differentiable": False, "samples": lambda self, rng: iter(())}
    parts |= {"infer": lambda self, x: x, "eval": lambda self, xp, x: x}
    with pytest.raises(TypeError, match="lacks `unview`, because it gives a view"):
        type("Odd", (Op,), parts)
    with pytest.raises(TypeError, match="add gives no view"):
        lookup("add").unview(None, None, None, [])


def test_only_basic_indexing_makes_a_view():
    assert is_basic((("int", 0), ("new",), WHOLE))
    assert not lookup("index").makes_view(spec=(("tensor",),))
    assert not lookup("index").makes_view(spec=(("mask",),))
    assert not lookup("add").makes_view()


def test_the_key_ends_in_an_ellipsis_so_that_0d_results_are_arrays():
    assert key((("int", 1),), ()) == (1, ...)
    assert compute("index", np.arange(3.0), spec=(("int", 1),)).shape == ()
