"""InputSpec: what an input looks like."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.static import InputSpec


def test_none_is_an_extent_that_varies():
    spec = InputSpec([None, 4], "float32", "x")
    assert (spec.shape, spec.dtype, spec.name) == ((-1, 4), paddle.float32, "x")


def test_declarations_of_tensors_and_arrays():
    assert InputSpec.from_tensor(paddle.ones([2, 3]), "a") == InputSpec([2, 3], "float32", "a")
    assert InputSpec.from_numpy(np.ones(2), "b") == InputSpec([2], "float64", "b")


def test_equal_declarations_have_one_hash():
    assert hash(InputSpec([1])) == hash(InputSpec((1,)))
    assert InputSpec([1]) != InputSpec([2])


def test_batch_adds_an_axis_and_unbatch_takes_it():
    spec = InputSpec([3]).batch(8)
    assert spec.shape == (8, 3)
    assert spec.unbatch().shape == (3,)
    with pytest.raises(ValueError, match=r"unbatch\(\) of a declaration without axes"):
        InputSpec([]).unbatch()
