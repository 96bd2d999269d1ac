"""Each op on its own samples: what onnxruntime makes of its rule is what the op's `eval` gives."""

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st.ir.opdef import REGISTRY, lookup
from dy2st.ir.program import Program
from dy2st.ir.types import ListType, TensorType
from dy2st.onnx.exporting import NotExportable
from dy2st.onnx.writing import rules
from dy2st.onnx.writing.writer import REASONS
from dy2st.ops.collective.collective_base import Collective
from dy2st.passes.lowering import decompose
from tests.onnx.running import NO_KERNEL
from tests.onnx.running import run as run_in_onnxruntime
from tests.ops.evaluate import run
from tests.ops.test_registry import built, cases

MOST_WITHOUT = 62
"""Ops without a form in ONNX: this number only goes down."""
PARTLY = {
    "adaptive_avg_pool": "its cells are of different sizes where the extent is not known",
    "attention": "its dropout draws random numbers",
    "det": "onnxruntime has no kernel for float64, which it is computed in",
    "scalar_round": "to digits",
}
"""Ops with a rule for some of their samples: a table that only becomes shorter."""
DECOMPOSED = frozenset(decompose.RULES) - frozenset(rules.RULES)


def single(x):
    """The operand with float32 for float64, which onnxruntime has most kernels for."""
    if isinstance(x, list):
        return [single(item) for item in x]
    return x.astype(np.float32) if isinstance(x, np.ndarray) and x.dtype == np.float64 else x


PARTS = {name: rule.__module__.rpartition(".")[2].title() for name, rule in rules.RULES.items()}


def has_form(op, sample):
    known = op.name in rules.RULES or op.name in DECOMPOSED
    operands = [x for x in sample.operands if isinstance(x, np.ndarray)]
    if not all(x.size for x in operands) and "Scan" in PARTS.get(op.name, ""):
        return False  # of a tensor without elements onnxruntime's Scan divides by 0 and ends the process
    return known and op.name not in REASONS and not any(np.iscomplexobj(x) for x in operands)


@pytest.mark.parametrize("symbolic", [False, True], ids=["known", "symbolic"])
@pytest.mark.parametrize(("op", "sample"), cases(has_form))
def test_the_rule_gives_what_eval_gives(op, sample, symbolic):
    sample = type(sample)(tuple(map(single, sample.operands)), sample.attributes)
    block = built(op, sample, symbolic)
    if any(isinstance(v.type, ListType) and not isinstance(v.type.element, TensorType) for v in block.results):
        pytest.skip("its result is a list of optionals: part of a derivative")
    try:
        found = run_in_onnxruntime(Program({"main": block}), list(sample.operands))
    except (NotExportable, NO_KERNEL):
        assert op.name in PARTLY
        return
    wanted = run(block, list(sample.operands))
    for a, b in zip(found, wanted, strict=True):
        pairs = zip(a, b, strict=True) if isinstance(b, list) else [(a, b)]
        for got, meant in pairs:
            np.testing.assert_allclose(got, meant, rtol=2e-5, atol=2e-6)
            assert got.shape == np.shape(meant)


def test_every_op_has_a_rule_or_a_reason():
    known = {*rules.RULES, *DECOMPOSED, *REASONS}
    assert sorted(REGISTRY.keys() - known) == [], "write a rule, or say in rules/without.py why there is none"
    assert sorted(REASONS.keys() - REGISTRY.keys()) == []
    assert sorted(REASONS.keys() & rules.RULES.keys()) == []


def test_fewer_and_fewer_ops_are_without_a_rule():
    alone = [name for name in REASONS if not isinstance(lookup(name), Collective)]  # a model runs in one process
    assert len(alone) <= MOST_WITHOUT
