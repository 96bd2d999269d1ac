"""What ops say of operands that do not fit them, and what a class says of a rule that it does not have."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  (fills the registry)
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.opdef import REGISTRY, OpDef, lookup
from dy2st.ir.program import Block, Value, tensor_type
from dy2st.ir.types import BOOL, INT, UNSET, ConstType, ScalarType, TensorType, VariantType
from dy2st.ops.control.control_flow import check_arguments
from dy2st.ops.core.base import Op
from dy2st.ops.core.elementwise_base import Unary

F2, F3 = TensorType(dtypes.float32, (2,)), TensorType(dtypes.float32, (3,))
MATRIX, CUBE = TensorType(dtypes.float32, (2, 3)), TensorType(dtypes.float32, (2, 3, 3))
SQUARE, INTS = TensorType(dtypes.float32, (3, 3)), TensorType(dtypes.int64, (2,))
FLOAT = ScalarType("float")


def block_of(*types: Any, results: int = 0) -> Block:
    block = Block()
    for t in types:
        block.add_argument(t)
    block.results = block.arguments[:results]
    return block


def infer(name: str, *types: Any, **attributes: Any) -> Any:
    return REGISTRY[name].infer(*types, **attributes)


def structure(name: str, types: list[Any], blocks: list[Block], **attributes: Any) -> Any:
    return REGISTRY[name].infer_operation(types, attributes, blocks)


def evaluate(name: str, *operands: Any, **attributes: Any) -> Any:
    return REGISTRY[name].eval(np, *operands, **attributes)


class Bare(Op):
    """An op without rules of its own; `abstract` keeps it out of the registry."""

    abstract = True
    name = "bare"


class BareUnary(Unary):
    """A function of one operand without a slope."""

    abstract = True
    name = "bare_unary"


class BareDefinition(OpDef):
    """A definition without a type rule."""

    name = "bare_definition"


CASES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: BareDefinition().infer(), TypeError, "bare_definition has no type rule"),
    (lambda: Bare().eval(np), TypeError, "bare has no meaning on arrays"),
    (lambda: Bare().transpose(Builder(), [], [], []), TypeError, "bare has no transpose rule"),
    (lambda: Bare().unview(Builder(), Value(F2, Block()), Value(F2, Block()), []), TypeError, "bare gives no view"),
    (lambda: BareUnary().slope(Builder(), Value(F2, Block()), Value(F2, Block())), TypeError,
     "bare_unary has no slope"),
    (lambda: lookup("nonsense"), KeyError, "no op is named 'nonsense'"),
    (lambda: tensor_type(Value(FLOAT, Block(), None, "n")), TypeError, "a tensor is needed here, not <value n: float>"),
    (lambda: infer("renew", F2, F3), TypeError, "renew: the new elements are float32[2], the old ones float32[3]"),
    (lambda: infer("raise", kind="Nonsense", template=None), TypeError, "Nonsense is not a built-in exception"),
    (lambda: infer("variant_get", VariantType((UNSET, ConstType(None))), tag=1, message=""), TypeError,
     "alternative 1 of variant<unset | none> has no payload"),
    (lambda: check_arguments("cond", [F2], block_of()), TypeError, "cond: 1 operands for a block of 0 arguments"),
    (lambda: check_arguments("cond", [F2], block_of(FLOAT)), TypeError,
     "cond: operand 0 is float32[2], the block takes float"),
    (lambda: structure("try", [], [block_of(), block_of(F2)], label=None, kinds=("KeyError",)), TypeError,
     "try: without a label nothing is handed over, but the handler takes 1 values more"),
    (lambda: structure("try", [], [block_of(), block_of()], label=None, kinds=("Nonsense",)), TypeError,
     "Nonsense is not a built-in exception"),
    (lambda: structure("try", [F2], [block_of(F2, results=1), block_of(F2)], label=None, kinds=()), TypeError,
     "try: the body has 1 results, the handler 0"),
    (lambda: infer("transpose", MATRIX, perm=(0, 0)), ValueError, "perm [0, 0] is not a permutation of the 2 axes"),
    (lambda: structure("cond", [BOOL, F2], [block_of(F2, results=1), block_of(F2)]), TypeError,
     "cond: one branch has 1 results, the other 0"),
    (lambda: structure("counted_while", [INT, F2], [block_of(INT, F2)], carried=1, reverse=False), TypeError,
     "counted_while: the block gives 0 carried values, not 1"),
    (lambda: structure("counted_while", [INT, FLOAT], [block_of(INT, FLOAT, results=1)], carried=1, reverse=False),
     TypeError, "counted_while: carried value 0 enters as float and leaves as int"),
    (lambda: infer("real", F2), TypeError, "real needs complex numbers, not float32[2]"),
    (lambda: infer("complex", F2, F3), TypeError, "complex needs two tensors of float32 or of float64 and one shape"),
    (lambda: infer("fft", F2, axis=0, norm="ortho", inverse=False), TypeError,
     "fft needs complex numbers, not float32[2]"),
    (lambda: infer("bitcast", F3, dtype=dtypes.float64), ValueError,
     "the bits of float32[3] do not make up whole elements of"),
    (lambda: infer("lu", F2), ValueError, "lu needs matrices, not float32[2]"),
    (lambda: infer("matrix_exp", F2), ValueError, "matrix_exp needs square matrices, not float32[2]"),
    (lambda: infer("matrix_exp_slope", SQUARE, CUBE), ValueError,
     "matrix_exp_slope needs matrices of one dtype and rank, not"),
    (lambda: infer("gather_tree", INTS, INTS), ValueError, "gather_tree needs ids and parents of 3 axes"),
    (lambda: infer("solve", SQUARE, CUBE), ValueError, "solve needs operands of one rank and batch, not"),
    (lambda: evaluate("list_get", [1], 3), IndexError, "list index out of range"),
    (lambda: evaluate("list_set", [1], 3, 0), IndexError, "list assignment index out of range"),
    (lambda: evaluate("list_pop", [], -1), IndexError, "pop from empty list"),
    (lambda: evaluate("list_pop", [1], 3), IndexError, "pop index out of range"),
    (lambda: evaluate("scalar_pow", 2, -1), ValueError,
     "2 ** -1: a negative power of an int gives a float; write float(2) ** -1"),
    (lambda: evaluate("scalar_pow", -1.0, 0.5), ValueError, "-1.0 ** 0.5 is a complex number"),
    (lambda: evaluate("item", np.zeros(2)), ValueError,
     "only a tensor of one element has a Python value, this one has shape [2]"),
    (lambda: evaluate("unreachable", type=BOOL), AssertionError, "a value that no run reaches was computed"),
    (lambda: infer("reshape", MATRIX, shape=(4,)), ValueError,
     "cannot reshape a tensor of shape [2, 3] into [4]"),
    (lambda: REGISTRY["list_append"].transpose(Builder(), [], [], []), TypeError,  # type: ignore[attr-defined]
     "list_append is linearised into list_put, which has the transpose"),
]  # fmt: skip


@pytest.mark.parametrize("name", ["inverse", "det", "slogdet", "cholesky", "eigh", "eig"])
@pytest.mark.parametrize("shape", [(2, 3), (3,)])
def test_a_run_refuses_what_is_no_square_matrix(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=rf"^{name} needs (square )?matrices, not the shape \["):
        evaluate(name, np.ones(shape))


@pytest.mark.parametrize(("call", "kind", "text"), CASES, ids=[case[2] for case in CASES])
def test_what_does_not_fit_is_named(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        call()
