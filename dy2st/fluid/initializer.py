"""1.x's initializers: the names and arguments of that time, the rules of `nn.initializer`.

`seed` is accepted; all draws come from the one generator that `paddle.seed` sets.
"""

from __future__ import annotations

from dy2st.nn.initializer import (
    Bilinear,
    Constant,
    Initializer,
    KaimingNormal,
    KaimingUniform,
    Normal,
    NumpyArrayInitializer,
    TruncatedNormal,
    Uniform,
    XavierNormal,
    XavierUniform,
)


def Xavier(
    uniform: bool = True, fan_in: float | None = None, fan_out: float | None = None, seed: int = 0
) -> Initializer:
    """Return Glorot's initializer: uniform, or normal where `uniform` is False.

    >>> import dy2st.fluid as fluid
    >>> fluid.initializer.Xavier(uniform=False)
    XavierNormal(fan_in=None, fan_out=None, gain=1.0)
    """
    return (XavierUniform if uniform else XavierNormal)(fan_in, fan_out)


def MSRA(uniform: bool = True, fan_in: float | None = None, seed: int = 0) -> Initializer:
    """Return Kaiming's initializer: uniform, or normal where `uniform` is False."""
    return KaimingUniform(fan_in) if uniform else KaimingNormal(fan_in)


ConstantInitializer, NormalInitializer, UniformInitializer = Constant, Normal, Uniform
TruncatedNormalInitializer, BilinearInitializer = TruncatedNormal, Bilinear
XavierInitializer, MSRAInitializer = Xavier, MSRA

__all__ = [
    "MSRA",
    "Bilinear",
    "BilinearInitializer",
    "Constant",
    "ConstantInitializer",
    "Initializer",
    "MSRAInitializer",
    "Normal",
    "NormalInitializer",
    "NumpyArrayInitializer",
    "TruncatedNormal",
    "TruncatedNormalInitializer",
    "Uniform",
    "UniformInitializer",
    "Xavier",
    "XavierInitializer",
]
