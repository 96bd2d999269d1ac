"""`paddle.fft`: discrete Fourier transforms, all made of the one along an axis of complex numbers.

`n` (or `s`) is the length to which an axis is cut, or filled up with zeros, before it is transformed. `norm` says which
way is divided by the length: "backward" the inverse, "forward" the other, "ortho" both by its root.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dy2st.functions.core.operands import all_axes, floating, one_axis, op
from dy2st.functions.math.complex_numbers import conj, real, whole
from dy2st.functions.shape.concat_split import concat
from dy2st.functions.shape.creation import arange
from dy2st.functions.shape.manipulation import flip, roll
from dy2st.missing import missing_in
from dy2st.nn.functional.padding import pad
from dy2st.runtime.eager.dispatch import apply
from dy2st.runtime.eager.tensor import Tensor

_NORMS = ("backward", "forward", "ortho")
_OTHER = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def fft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the Fourier transform along an axis.

    >>> import dy2st as paddle
    >>> paddle.fft.fft(paddle.to_tensor([1.0, 0.0, 0.0, 0.0])).tolist()
    [(1+0j), (1+0j), (1+0j), (1+0j)]
    """
    return _along(whole(x, "fft"), n, axis, norm, False)


def ifft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the inverse Fourier transform along an axis."""
    return _along(whole(x, "ifft"), n, axis, norm, True)


def rfft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the first half of the transform of real numbers, n // 2 + 1 elements; the rest are their conjugates."""
    return _half(_along(whole(_real(x, "rfft"), "rfft"), n, axis, norm, False), axis)


def irfft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the n real numbers (2 (m - 1) by default) whose `rfft` the m elements along an axis are."""
    x = whole(x, "irfft")
    return real(_along(_mirrored(x, n, axis), None, axis, norm, True))


def hfft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the real transform of a signal of which one half is given, the other being its conjugate."""
    return irfft(conj(whole(x, "hfft")), n, axis, _other(norm))


def ihfft(x: Any, n: int | None = None, axis: int = -1, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the half of the signal whose `hfft` x is."""
    return conj(rfft(x, n, axis, _other(norm)))


def fftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the Fourier transform along several axes (all when None)."""
    return _over(fft, whole(x, "fftn"), s, axes, norm)


def ifftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the inverse Fourier transform along several axes (all when None)."""
    return _over(ifft, whole(x, "ifftn"), s, axes, norm)


def rfftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the transform of real numbers along several axes, of the last of them the first half."""
    return _over(fft, _real(x, "rfftn"), s, axes, norm, first=rfft)


def irfftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the real numbers whose `rfftn` x is."""
    return _over(ifft, whole(x, "irfftn"), s, axes, norm, last=irfft)


def hfftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the real transform along several axes of a signal of which half is given along the last of them."""
    return _over(fft, whole(x, "hfftn"), s, axes, norm, last=hfft)


def ihfftn(x: Any, s: Any = None, axes: Any = None, norm: str = "backward", name: str | None = None) -> Tensor:
    """Return the half of the signal whose `hfftn` x is."""
    return _over(ifft, _real(x, "ihfftn"), s, axes, norm, first=ihfft)


def _plane(function: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    def transform(
        x: Any, s: Any = None, axes: Any = (-2, -1), norm: str = "backward", name: str | None = None
    ) -> Tensor:
        return function(x, s, axes, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"Do what `{function.__name__}` does along two axes."
    return transform


fft2, ifft2 = _plane(fftn, "fft2"), _plane(ifftn, "ifft2")
rfft2, irfft2 = _plane(rfftn, "rfft2"), _plane(irfftn, "irfft2")
hfft2, ihfft2 = _plane(hfftn, "hfft2"), _plane(ihfftn, "ihfft2")


def fftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the frequencies that the elements of a transform of n samples, d apart, belong to."""
    places = concat([arange((n + 1) // 2, dtype=dtype or "float32"), arange(-(n // 2), 0, dtype=dtype or "float32")])
    return places / (n * d)


def rfftfreq(n: int, d: float = 1.0, dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the frequencies that the elements of `rfft` belong to."""
    return arange(n // 2 + 1, dtype=dtype or "float32") / (n * d)


def fftshift(x: Tensor, axes: Any = None, name: str | None = None) -> Tensor:
    """Return the transform with the frequency 0 in the middle of each axis."""
    found = all_axes(axes, x.ndim, "fftshift")
    return roll(x, [x.shape[a] // 2 for a in found], list(found))


def ifftshift(x: Tensor, axes: Any = None, name: str | None = None) -> Tensor:
    """Undo `fftshift`."""
    found = all_axes(axes, x.ndim, "ifftshift")
    return roll(x, [-(x.shape[a] // 2) for a in found], list(found))


def _along(x: Tensor, n: int | None, axis: int, norm: str, inverse: bool) -> Tensor:
    axis = one_axis(axis, x.ndim, "fft")
    if norm not in _NORMS:
        raise ValueError(f"fft: norm is {norm!r}, not 'backward', 'forward' or 'ortho'")
    x = _of_length(x, n, axis)
    if isinstance(x.shape[axis], int) and x.shape[axis] == 0:
        raise ValueError(f"fft: axis {axis} of {x.shape} is empty")
    return apply(op("fft"), x, axis=axis, norm=norm, inverse=inverse)


def _of_length(x: Tensor, n: int | None, axis: int) -> Tensor:
    """Return x cut, or filled up with zeros, to n elements along an axis."""
    if n is None:
        return x
    if n < 1:
        raise ValueError(f"fft: a length must be positive, not {n}")
    extent = x.shape[axis]
    if not (isinstance(extent, int) and extent >= n):
        more = n - extent if isinstance(extent, int) else n
        x = pad(x, [v for a in range(x.ndim) for v in (0, more if a == axis else 0)])
    return x[(*(slice(None),) * axis, slice(n))]


def _half(x: Tensor, axis: int) -> Tensor:
    axis = one_axis(axis, x.ndim, "rfft")
    return x[(*(slice(None),) * axis, slice(x.shape[axis] // 2 + 1))]


def _mirrored(x: Tensor, n: int | None, axis: int) -> Tensor:
    """Return the whole of a transform from its first half: n elements."""
    axis = one_axis(axis, x.ndim, "irfft")
    count: Any = 2 * (x.shape[axis] - 1) if n is None else n
    x = _of_length(x, count // 2 + 1, axis) if isinstance(count, int) else x
    inner = x[(*(slice(None),) * axis, slice(1, (count + 1) // 2))]
    return concat([x, conj(flip(inner, axis))], axis)


def _over(
    transform: Callable[..., Tensor], x: Tensor, s: Any, axes: Any, norm: str, first: Any = None, last: Any = None
) -> Tensor:
    """Transform along axes, the last of them by `first`, before the others, or by `last`, after them."""
    found: Sequence[int] = tuple(range(x.ndim)) if axes is None else [one_axis(a, x.ndim, "fft") for a in axes]
    if s is not None and axes is None:
        found = found[len(found) - len(s) :]
    if s is not None and len(s) != len(found):
        raise ValueError(f"fft: {len(s)} lengths for {len(found)} axes")
    lengths = dict(zip(found, [None] * len(found) if s is None else s, strict=True))
    if not found:
        raise ValueError(f"fft: there is no axis to transform in a tensor of shape {x.shape}")
    *others, final = found
    x = (first or transform)(x, lengths[final], final, norm) if last is None else x
    for axis in others:
        x = transform(x, lengths[axis], axis, norm)
    return x if last is None else last(x, lengths[final], final, norm)


def _real(x: Any, name: str) -> Tensor:
    x = floating(x, name)
    if x.dtype.is_complex:
        raise TypeError(f"{name} needs real numbers, not {x.dtype.name}")
    return x


def _other(norm: str) -> str:
    return _OTHER.get(norm, norm)


__getattr__ = missing_in(__name__)
