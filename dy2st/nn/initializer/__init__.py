"""Rules that give new parameters their values."""

from dy2st.missing import missing_in
from dy2st.nn.initializer.assign import Assign, NumpyArrayInitializer
from dy2st.nn.initializer.base import Initializer
from dy2st.nn.initializer.constant import Constant
from dy2st.nn.initializer.defaults import set_global_initializer
from dy2st.nn.initializer.distributions import Normal, TruncatedNormal, Uniform
from dy2st.nn.initializer.gain import calculate_gain
from dy2st.nn.initializer.kaiming import KaimingNormal, KaimingUniform
from dy2st.nn.initializer.structured import Bilinear, Dirac, Orthogonal
from dy2st.nn.initializer.xavier import XavierNormal, XavierUniform

__getattr__ = missing_in(__name__)

__all__ = [
    "Assign",
    "Bilinear",
    "Constant",
    "Dirac",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "NumpyArrayInitializer",
    "Orthogonal",
    "TruncatedNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "calculate_gain",
    "set_global_initializer",
]
