"""Large operations written as small ones: equal values, and only where the types say that nothing can raise."""

import numpy as np
import pytest

from dy2st.ops.reduce.normalization import BatchNormInfer, BatchNormTrain
from dy2st.passes.lowering.decompose import Decompose
from dy2st.runtime.interpreter.reference import evaluate
from tests.passes.texts import program, stays

DECOMPOSE = Decompose()
INFER = """
func main(%x: float32[N, 3, H, W], %s: float32[3], %b: float32[3], %m: float32[C], %v: float32[C]) {
  %y: float32[N, 3, H, W] = batch_norm_infer(%x, %s, %b, %m, %v) {axis=1, epsilon=1e-05}
  return %y
}
"""
TRAIN = """
func main(%x: float32[SHAPE], %s: float32[3], %b: float32[3]) {
  %y: float32[SHAPE], %m: float32[3], %v: float32[3] = batch_norm_train(%x, %s, %b) {axis=1, epsilon=1e-05}
  return %y, %m, %v
}
"""


def decomposed(text):
    made = program(text)
    assert DECOMPOSE.apply(made)
    assert not DECOMPOSE.apply(made)
    return made


def names(made):
    return [operation.name for operation in made.block.operations]


def test_batch_norm_at_inference():
    made = decomposed(INFER.replace("[C]", "[3]"))
    assert "batch_norm_infer" not in names(made)
    rng = np.random.default_rng(0)
    x, (scale, bias, mean) = rng.normal(size=(2, 3, 4, 5)).astype("f"), rng.normal(size=(3, 3)).astype("f")
    variance = np.array([0.0, 1.0, 4.0], np.float32)
    wanted = BatchNormInfer().eval(np, x, scale, bias, mean, variance, axis=1, epsilon=1e-5)
    assert np.allclose(evaluate(made, [x, scale, bias, mean, variance])[0], wanted, rtol=1e-5, atol=1e-6)


def test_statistics_of_other_extents_are_left_to_the_op():
    stays(DECOMPOSE, INFER)


@pytest.mark.parametrize("shape", [(4, 3), (4, 3, 5), (2, 3, 4, 5)])
def test_batch_norm_in_training(shape):
    made = decomposed(TRAIN.replace("SHAPE", ", ".join(map(str, shape))))
    assert "batch_norm_train" not in names(made)
    rng = np.random.default_rng(1)
    x, scale, bias = (rng.normal(size=s).astype("f") for s in (shape, 3, 3))
    for got, wanted in zip(
        evaluate(made, [x, scale, bias]), BatchNormTrain().eval(np, x, scale, bias, axis=1, epsilon=1e-5), strict=True
    ):
        assert np.allclose(got, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("op", "kept", "shape"), [("sum", "false", "3"), ("mean", "true", "1, 3, 1, 1"), ("mean", "false", "3")]
)
def test_a_reduction_over_both_sides_of_an_axis_is_two(op, kept, shape):
    made = decomposed(f"""
func main(%x: float32[N, 3, H, W]) {{
  %y: float32[{shape}] = {op}(%x) {{axis=(0, 2, 3), keepdim={kept}}}
  return %y
}}
""")
    assert [o.attributes["axis"] for o in made.block.operations] == [(2, 3), (0,)]
    x = np.random.default_rng(2).normal(size=(2, 3, 4, 5)).astype("f")
    wanted = getattr(np, op)(x, axis=(0, 2, 3), keepdims=kept == "true")
    assert np.allclose(evaluate(made, [x])[0], wanted, rtol=1e-5)


@pytest.mark.parametrize("axis", ["(2, 3)", "(0,)", "(0, 1)", "(0, 2)", "(0, 1, 2, 3)"])
def test_other_reductions_stay(axis):
    left = ", ".join(e for i, e in enumerate("NCHW") if str(i) not in axis)
    stays(
        DECOMPOSE,
        f"""
func main(%x: float32[N, C, H, W]) {{
  %y: float32[{left}] = sum(%x) {{axis={axis}, keepdim=false}}
  return %y
}}
""",
    )


def test_a_sum_of_one_term_is_the_term():
    made = decomposed("""
func main(%x: float32[1, 1, N, 3]) {
  %n: int(N) = dim(%x) {axis=2}
  %y: float32[N, 3] = sum_to(%x, %n) {shape=(none, 3)}
  return %y
}
""")
    assert names(made) == ["dim", "squeeze"]
    x = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    assert evaluate(made, [x])[0].tolist() == x[0, 0].tolist()


def test_a_sum_to_one_element_a_channel_is_two_sums():
    made = decomposed("""
func main(%x: float32[N, 3, H, W]) {
  %y: float32[1, 3, 1, 1] = sum_to(%x) {shape=(1, 3, 1, 1)}
  return %y
}
""")
    assert names(made) == ["sum", "sum"]
    x = np.ones((2, 3, 4, 5), np.float32)
    assert evaluate(made, [x])[0].tolist() == np.full((1, 3, 1, 1), 40.0).tolist()
