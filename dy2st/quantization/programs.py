"""A saved model with weights of 8 or 4 bits, without its class: its Programs are rewritten.

    %y = matmul(%x, %fc.weight)        %y = quantized_matmul(%x, %fc.quant_weight, %fc.quant_scale)
    %y = conv(%x, %c.weight)           %w = dequantize(%c.quant_weight, %c.quant_scale); %y = conv(%x, %w)

1. A weight is rounded where a product or a convolution reads it: a parameter of float32 that no Program writes to and
   that has one name. Whatever else reads it gets it as numbers.
2. With calibration data, what such a product reads beside is rounded too, to 255 steps up to the threshold that the
   data give (calibration.py). An engine of integers would compute the same numbers.
3. Weights are not trained then; gradients flow to everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dy2st.dtypes import float32, int8
from dy2st.ir.builder import Builder
from dy2st.ir.clone import clone_program
from dy2st.ir.program import Block, Operation, Value, tensor_type
from dy2st.ir.types import TensorType
from dy2st.ir.verifier import verify
from dy2st.jit import load
from dy2st.jit.serialization.schema import SavedCall, SavedLayer, SavedMethod, StateTensor
from dy2st.jit.serialization.translated_layer import TranslatedLayer, now
from dy2st.ops.linalg.matmul import MatMul
from dy2st.ops.nn.conv import Conv
from dy2st.quantization.calibration import calibrated
from dy2st.quantization.rounding import rounded_rows
from dy2st.records import record, replace

_MOST = 127


@record(frozen=True)
class _Weight:
    """A weight as integers with scales; `turned` where rows of it are columns of the integers."""

    name: str
    bits: int
    group: int
    turned: bool
    integers: np.ndarray
    scale: np.ndarray

    @property
    def names(self) -> tuple[str, str]:
        """What the integers and the scales are called in the state."""
        stem, _, last = self.name.rpartition(".")
        before = f"{stem}." if stem else ""
        own = "" if last == "weight" else f"{last}_"
        return f"{before}{own}quant_weight", f"{before}{own}quant_scale"


def quantize_program(
    model: Any, calibration: Iterable[Any] | None = None, *, bits: int = 8, group_size: int = -1,
    activations: str = "percentile",
) -> TranslatedLayer:  # fmt: skip
    """Return a saved model with weights of 8 or 4 bits, ready for `paddle.jit.save`.

    Parameters
    ----------
    model
        What `paddle.jit.load` returned, or the path of a file.
    calibration
        Batches of inputs of `forward`, each an array or tensor, a tuple of arguments or a dict of them: then inputs of
        products are rounded too. A reader (a function without arguments that gives batches) will do.
    bits
        8 or 4. With 4, filters and weights with an odd number of outputs have 8.
    group_size
        -1 for one scale an output; else one for each so many inputs (a multiple of 16), of products alone.
    activations
        How the largest input that is represented follows from the data: "absmax", "percentile" (99.99 % of all
        magnitudes are below) or "kl" (the least divergence of the distributions).

    ValueError where no weight can be rounded, or where no calibration data fit.

    >>> import tempfile
    >>> import dy2st as paddle
    >>> folder = tempfile.TemporaryDirectory()
    >>> net = paddle.nn.Linear(64, 32)
    >>> path = paddle.jit.save(net, folder.name + "/net", input_spec=[paddle.static.InputSpec([None, 64])])
    >>> small = paddle.quantization.quantize_program(path)
    >>> x = paddle.ones([2, 64])
    >>> bool((small(x) - net(x)).abs().max() < 0.02), sorted(small.state_dict())
    (True, ['bias', 'quant_scale', 'quant_weight'])
    >>> paddle.jit.save(small, folder.name + "/small").stat().st_size < path.stat().st_size
    True
    >>> folder.cleanup()
    """
    if bits not in (4, 8) or group_size == 0 or group_size < -1 or (group_size > 0 and group_size % 16):
        raise ValueError(f"quantize_program: 8 or 4 bits, groups of multiples of 16, not {bits} and {group_size}")
    layer = load(model) if isinstance(model, (str, Path)) else model
    if not isinstance(layer, TranslatedLayer):
        raise TypeError(f"quantize_program takes what paddle.jit.load returns, not {type(layer).__name__}")
    saved = now(layer)
    weights = {w.name: w for w in _rounded(saved, bits, group_size)}
    if not weights:
        raise ValueError("no product and no convolution of the model reads a parameter of float32")
    thresholds: Mapping[str, Mapping[int, float]] = {}
    if calibration is not None:
        places = {call.function: list(_products(saved, call, weights)) for call in _calls(saved)}
        thresholds = calibrated(layer, calibration, places, activations)
    return TranslatedLayer(_rewritten(saved, weights, thresholds))


def _calls(saved: SavedLayer) -> list[SavedCall]:
    return [call for method in saved.methods.values() for call in method.calls]


def _named(saved: SavedLayer, call: SavedCall) -> dict[Value, str]:
    """Return the arguments of a function that are state, by name."""
    arguments = saved.program.functions[call.function].arguments[call.inputs :]
    return dict(zip(arguments, call.state, strict=True))


# ---- 1 -------------------------------------------------------------------------------------------------------------
def _rounded(saved: SavedLayer, bits: int, group_size: int) -> Iterable[_Weight]:
    """Yield the weights that products or convolutions read, as integers."""
    written = {target.name for call in _calls(saved) for target, _ in call.writes}
    aliases = {t.same for t in saved.state.values()}
    readers: dict[str, list[Operation]] = {}
    for call in _calls(saved):
        named = _named(saved, call)
        for operation in saved.program.functions[call.function].operations:
            if _is_product(operation) and operation.operands[1] in named:
                readers.setdefault(named[operation.operands[1]], []).append(operation)
    for name, t in saved.state.items():
        if name in written or name in aliases or t.same is not None or t.kind != "parameter" or name not in readers:
            continue
        if t.array.dtype == np.float32 and t.array.size:
            yield _integers(t, readers[name][0], bits, group_size)


def _is_product(operation: Operation) -> bool:
    """Return whether an operation is a product with a weight on its right, or a convolution with filters."""
    if isinstance(operation.op, MatMul):
        return tensor_type(operation.operands[1]).rank == 2 and not operation.attributes["transpose_x"]
    return isinstance(operation.op, Conv)


def _integers(t: StateTensor, reader: Operation, bits: int, group_size: int) -> _Weight:
    turned = isinstance(reader.op, MatMul) and not reader.attributes["transpose_y"]
    rows = t.array.T if turned else t.array
    of_product = rows.ndim == 2
    bits = bits if of_product and rows.shape[0] % 2 == 0 else 8
    group = group_size if of_product and group_size > 0 and rows.shape[1] % group_size == 0 else 0
    return _Weight(t.name, bits, group, turned, *rounded_rows(rows, bits, group))


def _products(saved: SavedLayer, call: SavedCall, weights: Mapping[str, _Weight]) -> Iterable[int]:
    """Yield the numbers of a function's operations that are products with a weight."""
    named = _named(saved, call)
    for i, operation in enumerate(saved.program.functions[call.function].operations):
        if _is_product(operation) and named.get(operation.operands[1]) in weights:
            yield i


# ---- rewriting -----------------------------------------------------------------------------------------------------
def _rewritten(
    saved: SavedLayer, weights: Mapping[str, _Weight], thresholds: Mapping[str, Mapping[int, float]]
) -> SavedLayer:  # fmt: skip
    program = clone_program(saved.program)
    source = replace(saved, program=program)
    for call in {call.function: call for call in _calls(saved)}.values():
        named = {v: weights[name] for v, name in _named(source, call).items() if name in weights}
        _Rewriting(program.functions[call.function], named, thresholds.get(call.function, {})).run()
    verify(program)
    methods = {
        name: SavedMethod(method.signature, [_renamed(call, weights) for call in method.calls])
        for name, method in saved.methods.items()
    }
    state: dict[str, StateTensor] = {}
    for name, t in saved.state.items():
        if name not in weights:
            state[name] = t
            continue
        weight = weights[name]
        for own, array in zip(weight.names, (weight.integers, weight.scale), strict=True):
            if own in saved.state:
                raise ValueError(f"the model has a tensor {own!r} already")
            state[own] = StateTensor(own, "parameter", True, array)
    return SavedLayer(program, methods, state, saved.training)


def _renamed(call: SavedCall, weights: Mapping[str, _Weight]) -> SavedCall:
    names = [own for name in call.state for own in (weights[name].names if name in weights else (name,))]
    return replace(call, state=names)


class _Rewriting:
    """Gives a function integers for weights."""

    def __init__(self, block: Block, weights: Mapping[Value, _Weight], thresholds: Mapping[int, float]):
        self._block, self._weights, self._thresholds = block, weights, thresholds
        self._given: dict[Value, tuple[Value, Value]] = {}
        self._values: dict[Value, Value] = {}
        """What stands in the place of results, and of weights that are read as numbers."""

    def run(self) -> None:
        block = self._block
        arguments, block.arguments = block.arguments, []
        operations, block.operations = block.operations, []
        for argument in arguments:
            weight = self._weights.get(argument)
            if weight is None:
                block.arguments.append(argument)
                continue
            types = TensorType(int8, weight.integers.shape), TensorType(float32, weight.scale.shape)
            first, second = (block.add_argument(t, name) for t, name in zip(types, weight.names, strict=True))
            self._given[argument] = first, second
        b = Builder(block)
        for number, operation in enumerate(operations):
            b.location = operation.location
            self._write(b, number, operation)
        block.results = [self._now(b, v) for v in block.results]

    def _now(self, b: Builder, value: Value) -> Value:
        """Return what stands in the place of a value: of a weight its numbers, written at its first reader."""
        if value in self._given and value not in self._values:
            weight = self._weights[value]
            made = b.dequantize(*self._given[value], bits=weight.bits, group=weight.group)
            self._values[value] = b.transpose(made, perm=(1, 0)) if weight.turned else made
        return self._values.get(value, value)

    def _write(self, b: Builder, number: int, operation: Operation) -> None:
        weight = self._weights.get(operation.operands[1]) if _is_product(operation) else None
        if weight is None:
            operation.operands = [self._now(b, v) for v in operation.operands]
            b.adopt(operation)
            return
        x = self._now(b, operation.operands[0])
        if number in self._thresholds:
            x = _rounded_input(b, x, self._thresholds[number])
        fits = isinstance(operation.op, MatMul) and weight.turned is not operation.attributes["transpose_y"]
        if not fits or tensor_type(x).rank != 2:
            operation.operands = [x, self._now(b, operation.operands[1])]
            b.adopt(operation)
            return
        integers, scale = self._given[operation.operands[1]]
        made = b.quantized_matmul(x, integers, scale, bits=weight.bits, group=weight.group)
        self._values[operation.results[0]] = made


# ---- 2 -------------------------------------------------------------------------------------------------------------
def _rounded_input(b: Builder, x: Value, threshold: float) -> Value:
    """Emit x rounded to 255 steps, what is beyond the threshold moved to it."""
    steps = b.round(b.mul(x, _MOST / threshold))
    return b.mul(b.minimum(b.maximum(steps, -float(_MOST)), float(_MOST)), threshold / _MOST)
