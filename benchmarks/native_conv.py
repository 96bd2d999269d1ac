"""Measure the native tier's convolutions and attention, beside torch's where it is installed, on one thread.

PYTHONPATH=. python benchmarks/native_conv.py > docs/native-conv.md
"""

import os

os.environ["OMP_NUM_THREADS"] = os.environ["DY2ST_NUM_THREADS"] = "1"

import ctypes
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from dy2st.runtime.backends.cpu.attention.shape_descriptor import FIELDS as ATTENTION_FIELDS
from dy2st.runtime.backends.cpu.compile_link.target import current_target
from dy2st.runtime.backends.cpu.conv import shape_row
from dy2st.runtime.backends.cpu.runtime_library_symbols import address

try:
    import torch
except ImportError:
    torch = None

Job = Callable[[], object]
LAYERS = (
    ("LeNet 1", 64, 1, 6, 28, 3, 1, 1), ("LeNet 2", 64, 6, 16, 14, 5, 1, 0), ("ResNet stem", 8, 3, 64, 64, 7, 2, 3),
    ("ResNet 1", 8, 64, 64, 16, 3, 1, 1), ("ResNet 2, first", 8, 64, 128, 16, 3, 2, 1),
    ("ResNet 2", 8, 128, 128, 8, 3, 1, 1), ("ResNet 3", 8, 256, 256, 4, 3, 1, 1),
    ("ResNet 4, first", 8, 256, 512, 4, 3, 2, 1), ("ResNet 4", 8, 512, 512, 2, 3, 1, 1),
    ("ResNet 1, alone", 1, 64, 64, 16, 3, 1, 1), ("ResNet 4, alone", 1, 512, 512, 2, 3, 1, 1),
    ("1 x 1", 8, 64, 256, 16, 1, 1, 0), ("3 x 3, large", 1, 64, 64, 112, 3, 1, 1),
    ("depthwise", 8, 128, 128, 28, 3, 1, 1, 128), ("depthwise, by 2", 8, 64, 64, 56, 3, 2, 1, 64),
)  # fmt: skip
"""A name, images, channels, filters, extent, kernel, stride, padding, and groups where there are several."""
HEADS = ((8, 8, 128, 32), (1, 8, 1024, 64), (8, 8, 1, 64))
"""Batch, heads, queries (keys where more than 1, else 1024 keys), features."""
HEAD = """# Convolutions and attention in the native tier

`dy2st/runtime/backends/cpu/conv/` and `attention/` beside torch ({torch}), one thread each, vectors of {bytes} bytes,
float32; least processor time of many runs, taken by turns. GFLOP/s count two for each element of the kernel and place
of the result, so what takes fewer multiplications may be above what the CPU can multiply. The tables are what
`PYTHONPATH=. python benchmarks/native_conv.py` printed.

Which way a convolution goes is told by its extents when it runs (`select_algorithm.py`):

- **A kernel of 1 x 1** that takes every element is a product of matrices, of the image as it lies.
- **Vectors of places** (`direct/forward.py`): the image is copied with its padding, cut by the stride into planes in
  which windows move by 1; a vector has 16 places of the result across the ends of rows, read by two loads and a
  permutation (AVX-512). Nothing is multiplied in vain but the last vector of an image. The gradient by the filters
  reads the same vectors (`direct/wgrad.py`), that by the image is a convolution with the filters turned
  (`direct/dgrad.py`).
- **Tiles** (`winograd.py`): 3 x 3 with stride 1, 32 channels and filters and 16 tiles or more; 16 multiplications for 4
  results where there were 36. Errors against float64 are those of NumPy's float32. A result that is not finite makes
  the convolution run again without tiles, so that infinities stay in their windows.
- **Several images of few places or tiles** (`batch_interleaved.py`): eight images' elements are mixed, and fill vectors
  together.
- **Few places** (`small_output.py`): vectors lie along the windows, and filters are read once, asked for ahead.
- **Groups of one or two filters** (`depthwise/forward.py`, and gradients beside it): each thread runs a filter over the
  padded planes of its group as one line.
- **Else**, and on lesser CPUs, windows are laid out in blocks (`im2col.py`, `im2col_batched.py`), or slid over
  (`shifted_gemm.py`).

Attention (product, mask, softmax, product, where nobody reads the weights; `passes/simplify/fuse_attention.py`) keeps
the scores of up to 64 queries in cache, and reads heads that are views of a projection as they lie. Reverse mode does
the same before it derives: a head's weights are computed again, a block of queries at a time (`gradient.py`), so a step
of training holds no more than its inputs and results. A causal mask is not made; keys that no query of a block sees are
left out.
"""


def main() -> None:
    version = "not installed" if torch is None else torch.__version__
    print(HEAD.format(bytes=current_target().vector_bytes, torch=version))
    _head("layer", "images", "what", "ours, us", "torch, us", "ours, GFLOP/s", "torch's time / ours")
    for name, *extents in LAYERS:
        flops = _flops(*extents)
        for kind, jobs in zip(("forward", "by the image", "by the filters"), convolutions(*extents), strict=True):
            ours, theirs = measured(*jobs)
            _row(
                name,
                extents[0],
                kind,
                f"{ours:.4g}",
                _or_none(theirs),
                f"{flops / ours / 1e3:.1f}",
                _ratio(ours, theirs),
            )
    print()
    _head("attention: batch, heads, queries, keys, features", "ours, us", "torch, us", "torch's time / ours")
    for batch, heads, queries, features in HEADS:
        extents = batch, heads, queries, queries if queries > 1 else 1024, features
        ours, theirs = measured(*attention(*extents))
        _row(", ".join(map(str, extents)), f"{ours:.4g}", _or_none(theirs), _ratio(ours, theirs))


def _head(*cells: str) -> None:
    _row(*cells)
    print("|" + "---|" * len(cells))


def _row(*cells: object) -> None:
    print("|", " | ".join(map(str, cells)), "|", flush=True)


def convolutions(images: int, channels: int, filters: int, extent: int, kernel: int, stride: int,
                 padding: int, groups: int = 1) -> list[tuple[Job, Job | None]]:  # fmt: skip
    """Return the convolution and its gradients by the image and by the filters, ours and torch's."""
    out = (extent + 2 * padding - kernel) // stride + 1
    rng = np.random.default_rng(0)
    x, w, c = (
        rng.normal(size=s).astype(np.float32)
        for s in (
            (images, channels, extent, extent),
            (filters, channels // groups, kernel, kernel),
            (images, filters, out, out),
        )
    )
    fields = {"in": extent, "kernel": kernel, "out": out, "stride": stride, "low": padding, "dilation": 1}
    row = np.array(shape_row(images, channels, filters, groups, **{k: (v, v) for k, v in fields.items()}), np.int64)
    scratch = _scratch("conv.f32.scratch", row)
    operands = [a.ctypes.data for a in (x, w, c, row, scratch)]
    names = ("conv.f32", "conv_input_grad.f32", "conv_weight_grad.f32")
    keep = (x, w, c, row, scratch)
    ours = [_call(_function(name, 5), operands, keep) for name in names]
    return list(zip(ours, _torch_convolutions(x, w, c, stride, padding, groups), strict=True))


def _torch_convolutions(x: Any, w: Any, c: Any, stride: int, padding: int, groups: int) -> list[Job | None]:
    if torch is None:
        return [None] * 3
    tx, tw, tc = map(torch.from_numpy, (x, w, c))
    back = torch.nn.grad
    return [
        lambda: torch.nn.functional.conv2d(tx, tw, None, stride, padding, 1, groups),
        lambda: back.conv2d_input(tx.shape, tw, tc, stride, padding, 1, groups),
        lambda: back.conv2d_weight(tx, tw.shape, tc, stride, padding, 1, groups),
    ]


def attention(batch: int, heads: int, queries: int, keys: int, features: int) -> tuple[Job, Job | None]:
    """Return attention of dense heads, ours and torch's."""
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(batch, heads, n, features)).astype(np.float32) for n in (queries, keys, keys))
    out = np.empty_like(q)
    numbers = {
        "outer": batch,
        "inner": heads,
        "queries": queries,
        "keys": keys,
        "features": features,
        "values": features,
    }
    for name, x in zip("qkv", (q, k, v), strict=True):
        for axis, step in zip(("outer", "inner", "row"), x.strides, strict=False):
            numbers[f"{name}_{axis}"] = step // 4
    row = np.array([numbers.get(name, 0) for name in ATTENTION_FIELDS], np.int64)
    scratch = _scratch("attention.f32.scratch", row)
    run = _function("attention.f32", 7)
    places = [q.ctypes.data, k.ctypes.data, v.ctypes.data, None, out.ctypes.data, row.ctypes.data, scratch.ctypes.data]
    keep = (q, k, v, out, row, scratch)
    theirs: Job | None = None
    if torch is not None:
        parts = [torch.from_numpy(x) for x in (q, k, v)]
        theirs = lambda: torch.nn.functional.scaled_dot_product_attention(*parts, scale=1.0)  # noqa: E731
    return _call(run, places, keep), theirs


def _call(run: Any, operands: list[Any], keep: tuple[Any, ...]) -> Job:
    """Return a call that keeps the arrays behind its addresses."""
    return lambda: (run(*operands), keep)


def _function(name: str, operands: int, result: Any = None) -> Any:
    return ctypes.CFUNCTYPE(result, *[ctypes.c_void_p] * operands)(address(name))


def _scratch(name: str, row: Any) -> Any:
    size = _function(name, 1, ctypes.c_int64)(row.ctypes.data)
    room = np.empty(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


def measured(ours: Job, theirs: Job | None) -> tuple[float, float | None]:
    """Return the least microseconds of processor time, taken by turns."""
    jobs = [ours] if theirs is None else [ours, theirs]
    best = [np.inf] * len(jobs)
    for job in jobs:
        job()
    end, turns = time.perf_counter() + 1.0, 0
    while turns < 5 or (time.perf_counter() < end and turns < 300):
        turns += 1
        for i, job in enumerate(jobs):
            start = time.thread_time_ns()
            job()
            best[i] = min(best[i], (time.thread_time_ns() - start) / 1e3)
    return float(best[0]), None if theirs is None else float(best[1])


def _flops(images: int, channels: int, filters: int, extent: int, kernel: int, stride: int, padding: int,
           groups: int = 1) -> int:  # fmt: skip
    out = (extent + 2 * padding - kernel) // stride + 1
    return 2 * images * channels // groups * filters * kernel**2 * out**2


def _or_none(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _ratio(ours: float, theirs: float | None) -> str:
    return "" if theirs is None else f"{theirs / ours:.2f}"


if __name__ == "__main__":
    if torch is not None:
        torch.set_num_threads(1)
    main()
