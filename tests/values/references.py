"""Convolution and pooling over any number of axes, in NumPy, written for reading: [batch, channels, *space]."""

import itertools

import numpy as np


def tuples(value, count):
    """Return one number an axis."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,) * count


def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """Return the convolution; `padding` is a number, one an axis, or pairs."""
    rank = x.ndim - 2
    x = np.pad(x, [(0, 0), (0, 0), *pairs(padding, rank)])
    windows = cut(x, weight.shape[2:], tuples(stride, rank), tuples(dilation, rank))
    parts = [
        np.tensordot(part, kernel, (range(1, 2 + rank), range(1, 2 + rank)))
        if rank == 0
        else np.einsum(part, [0, 1, *range(3, 3 + 2 * rank)], kernel, [2, 1, *range(3 + rank, 3 + 2 * rank)],
                       [0, 2, *range(3, 3 + rank)])
        for part, kernel in zip(np.split(windows, groups, 1), np.split(weight, groups, 0))
    ]  # fmt: skip
    out = np.concatenate(parts, 1)
    return out if bias is None else out + bias.reshape(-1, *(1,) * rank)


def conv_transpose(x, weight, bias=None, stride=1, padding=0, output_padding=0, dilation=1, groups=1):
    """Return the transposed convolution: each element of x adds a kernel to the result."""
    rank = x.ndim - 2
    stride, dilation = tuples(stride, rank), tuples(dilation, rank)
    padding, more = pairs(padding, rank), tuples(output_padding, rank)
    kernel = weight.shape[2:]
    whole = [(n - 1) * s + d * (k - 1) + 1 + m for n, s, d, k, m in zip(x.shape[2:], stride, dilation, kernel, more)]
    out = np.zeros((x.shape[0], weight.shape[1] * groups, *whole))
    for place in np.ndindex(*kernel):
        at = tuple(slice(p * d, p * d + s * (n - 1) + 1, s) for p, d, s, n in zip(place, dilation, stride, x.shape[2:]))
        tap = np.split(weight[(slice(None), slice(None), *place)], groups, 0)
        moved = [np.einsum("nc...,co->no...", part, w) for part, w in zip(np.split(x, groups, 1), tap)]
        out[(slice(None), slice(None), *at)] += np.concatenate(moved, 1)
    ends = tuple(slice(lo, n - hi) for (lo, hi), n in zip(padding, whole))
    out = out[(slice(None), slice(None), *ends)]
    return out if bias is None else out + bias.reshape(-1, *(1,) * rank)


def pool(x, kernel, stride=None, padding=0, ceil_mode=False, how="max", exclusive=True, divisor=None, power=2.0):
    """Return the maximum, mean or norm over windows."""
    rank = x.ndim - 2
    kernel, stride = tuples(kernel, rank), tuples(kernel if stride is None else stride, rank)
    space = pairs(padding, rank)
    if ceil_mode:
        space = [(lo, hi + -(n + lo + hi - k) % s) for (lo, hi), n, k, s in zip(space, x.shape[2:], kernel, stride)]
    whole = [(0, 0), (0, 0), *space]
    windows = cut(np.pad(x, whole, constant_values=-np.inf if how == "max" else 0), kernel, stride, (1,) * rank)
    axes = tuple(range(2 + rank, 2 + 2 * rank))
    if how == "max":
        return windows.max(axes)
    if how == "norm":
        return (windows**power).sum(axes) ** (1 / power)
    if divisor is not None:
        return windows.sum(axes) / divisor
    ones = np.pad(np.ones_like(x), whole, constant_values=0 if exclusive else 1)
    return windows.sum(axes) / cut(ones, kernel, stride, (1,) * rank).sum(axes)


def adaptive(x, size, how):
    """Return the mean or maximum over parts of nearly equal length."""
    rank = x.ndim - 2
    size = tuples(size, rank)
    out = np.zeros((*x.shape[:2], *(n if s is None else s for n, s in zip(x.shape[2:], size))))
    for place in itertools.product(*map(range, out.shape[2:])):
        at = tuple(slice(p * n // s, -(-(p + 1) * n // s)) for p, n, s in zip(place, x.shape[2:], out.shape[2:]))
        part = x[(slice(None), slice(None), *at)]
        out[(slice(None), slice(None), *place)] = how(part, axis=tuple(range(2, 2 + rank)))
    return out


def cut(x, kernel, stride, dilation):
    """Return windows: [batch, channels, *places, *kernel]."""
    rank = len(kernel)
    span = [d * (k - 1) + 1 for d, k in zip(dilation, kernel)]
    windows = np.lib.stride_tricks.sliding_window_view(x, span, tuple(range(2, 2 + rank)))
    places, inside = (slice(None, None, s) for s in stride), (slice(None, None, d) for d in dilation)
    return windows[(slice(None), slice(None), *places, *inside)]


def pairs(padding, rank):
    """Return (before, after) an axis, from a number, one an axis, or both for each axis in one list."""
    listed = list(padding) if isinstance(padding, (list, tuple)) else [padding] * rank
    if len(listed) == 2 * rank and rank > 0 and not isinstance(listed[0], (list, tuple)) and len(listed) != rank:
        return [(listed[2 * i], listed[2 * i + 1]) for i in range(rank)]
    return [tuple(p) if isinstance(p, (list, tuple)) else (p, p) for p in listed]
