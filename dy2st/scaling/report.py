"""`dy2st scale`: a saved model's step measured here, and what it would be on many ranks, as a table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from dy2st.ir.types import ScalarType, TensorType
from dy2st.jit.serialization.translated_layer import TranslatedLayer
from dy2st.runtime.eager.tensor import Tensor
from dy2st.scaling.costs import costs_of, number_of, symbols_of
from dy2st.scaling.simulation import STRATEGIES, Link, Workload, outlook

RANKS = tuple(2**i for i in range(13))
WORTH = 0.5
"""Below this efficiency a strategy is said to have stopped."""


def report(layer: TranslatedLayer, batch: int, extents: Mapping[str, int], link: Link, micro_batches: int) -> str:
    """Return the table; ValueError names an extent that is not known, or is none of the Program."""
    if min(batch, micro_batches, *extents.values()) < 1 or not (link.bandwidth > 0 and link.latency >= 0):
        raise ValueError("batch, extents, micro-batches and bandwidth are positive, and latency is not negative")
    layer.train()
    method = layer._methods["forward"]
    number = next((i for i, (c, _) in enumerate(method.programs()) if c.mode in (None, "train")), 0)
    call, program = method.programs()[number]
    taken = program.block.arguments[: call.inputs]
    own = symbols_of([*taken, *(v for operation in program.walk() for v in operation.results)])
    if others := [name for name in extents if name not in own]:
        raise ValueError(f"no extent is named {', '.join(others)}; there are: {', '.join(own) or 'none'}")
    known = {**dict.fromkeys(symbols_of(taken)[:1], batch), **extents}
    costs = costs_of(program, call.inputs, known)
    seconds = _measured(layer, number, [_input(v.type, known) for v in taken])
    work = Workload(costs, seconds, micro_batches)
    flops = 3 * sum(c.flops for c in costs)
    lines = [
        f"batch {batch} a rank: {flops / 1e9:.3g} GFLOP a step in {seconds * 1e3:.3g} ms here "
        f"({flops / seconds / 1e9:.3g} GFLOP/s); {work.weights / 1e6:.3g} MB of weights, {work.kept / 1e6:.3g} MB kept",
        f"link: {link.latency * 1e6:g} us, {link.bandwidth / 1e9:g} GB/s",
        "",
        *_table(work, link),
    ]
    return "\n".join(lines) + "\n"


def _table(work: Workload, link: Link) -> Iterator[str]:
    yield "| ranks | strategy | step, ms | memory, MB | sent, MB | efficiency |"
    yield "|---|---|---|---|---|---|"
    for strategy in STRATEGIES:
        for ranks in RANKS:
            found = outlook(strategy, work, link, ranks)
            if found is None:
                yield f"| {ranks} | {strategy} | too many ranks for this model | | | |"
                break
            numbers = f"{found.seconds * 1e3:.3g} | {found.memory / 1e6:.3g} | {found.traffic / 1e6:.3g}"
            stops = " (stops)" if found.efficiency < WORTH else ""
            yield f"| {ranks} | {strategy} | {numbers} | {found.efficiency:.2f}{stops} |"
            if stops:
                break


def _measured(layer: TranslatedLayer, number: int, inputs: list[Any]) -> float:
    """Return the seconds of forward and backward on one batch, the best of five after warming up."""
    best = float("inf")
    for turn in range(8):
        begun = time.perf_counter()
        found = layer._methods["forward"].run(number, inputs)
        total = _total(found)
        if total is not None:
            total.backward()
        if turn > 2:
            best = min(best, time.perf_counter() - begun)
        for parameter in layer.parameters():
            parameter.clear_gradient()
    return best


def _total(x: Any) -> Tensor | None:
    """Return the sum of all that gradients flow through in an output."""
    if isinstance(x, Tensor):
        return None if x.stop_gradient else x.sum()
    parts = (
        [_total(i) for i in (x.values() if isinstance(x, dict) else x)] if isinstance(x, (dict, list, tuple)) else []
    )
    some = [p for p in parts if p is not None]
    return sum(some[1:], some[0]) if some else None


def _input(kind: Any, known: Mapping[str, int]) -> Any:
    """Return something of a type: ones."""
    if isinstance(kind, ScalarType):
        return {"int": 1, "float": 1.0, "bool": True}[kind.kind]
    if not isinstance(kind, TensorType):
        raise ValueError(f"an input is {kind}, and only tensors and numbers can be made up for a step")
    return Tensor(np.ones([number_of(n, known) for n in kind.shape], kind.dtype.numpy))
