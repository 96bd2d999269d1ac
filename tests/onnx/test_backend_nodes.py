"""ONNX's own tests of its operators, which the package `onnx` makes: how many of them models that are loaded pass.

    python -m tests.onnx.test_backend_nodes     the two numbers, and the reasons of the rest

Left out are the `expanded` forms: the same tests, with the operator written out by others.
"""

import warnings
from collections import Counter
from functools import cache

import numpy as np
import pytest

import dy2st as paddle
from dy2st.onnx.loading import layer_of
from dy2st.onnx.reading.model_file import parsed
from tests.onnx.running import onnx

LEAST, LEAST_PROGRAMS = 1030, 812
"""So many pass, and so many of them as one Program: numbers that go up. onnxruntime passes 642 of 862 core ones."""
RIGHT, EAGER = "", "runs eagerly"


@cache
def node_tests():
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return [case for case in collect_testcases(None) if "_expanded" not in case.name]


def given(x):
    """A value of ONNX's tests as a model takes it."""
    if isinstance(x, (list, tuple)):
        return [given(item) for item in x]
    if isinstance(x, onnx.TensorProto):
        x = onnx.numpy_helper.to_array(x)
    return None if x is None else paddle.to_tensor(np.asarray(x))


def compare(got, wanted, rtol, atol):
    if isinstance(wanted, (list, tuple)):
        for a, b in zip(got, wanted, strict=True):
            compare(a, b, rtol, atol)
        return
    if isinstance(wanted, onnx.TensorProto):
        wanted = onnx.numpy_helper.to_array(wanted)
    if wanted is None:
        assert got is None
        return
    assert got.numpy().dtype == np.asarray(wanted).dtype
    assert list(got.shape) == list(np.shape(wanted))
    np.testing.assert_allclose(got.numpy(), wanted, rtol=rtol, atol=atol)


def outcome(case):
    """Say why a test does not pass; "" where it does, `EAGER` where its model became no Program."""
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        try:
            layer = layer_of(parsed(case.model.SerializeToString(), case.name))
            for inputs, outputs in case.data_sets:
                made = layer(*map(given, inputs))
                for a, b in zip([made] if len(outputs) == 1 else made, outputs, strict=True):
                    compare(a, b, max(case.rtol, 1e-4), max(case.atol or 0, 1e-5))
        except Exception as error:
            return f"{type(error).__name__}: {error}".partition("\n")[0]
    return EAGER if any("runs eagerly" in str(w.message) for w in caught) else RIGHT


@pytest.mark.slow
def test_at_least_as_many_pass_as_before():
    found = Counter(outcome(case) for case in node_tests())
    assert found[RIGHT] + found[EAGER] >= LEAST
    assert found[RIGHT] >= LEAST_PROGRAMS


def main():
    found = Counter(outcome(case) for case in node_tests())
    total, right, eager = found.total(), found.pop(RIGHT, 0), found.pop(EAGER, 0)
    print(f"{right + eager} of {total} pass, {right} of them as one Program")
    for reason, count in found.most_common(40):
        print(f"{count:5} {reason[:150]}")


if __name__ == "__main__":
    main()
