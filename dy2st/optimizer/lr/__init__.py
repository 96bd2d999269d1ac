"""Learning-rate schedulers."""

from dy2st.missing import missing_in
from dy2st.optimizer.lr.base import LRScheduler
from dy2st.optimizer.lr.cycle import CyclicLR, LinearWarmup, OneCycleLR, ReduceOnPlateau
from dy2st.optimizer.lr.decay import (
    CosineAnnealingDecay,
    CosineAnnealingWarmRestarts,
    ExponentialDecay,
    InverseTimeDecay,
    LambdaDecay,
    LinearLR,
    MultiplicativeDecay,
    MultiStepDecay,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    StepDecay,
)

__getattr__ = missing_in(__name__)

__all__ = [
    "CosineAnnealingDecay",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LRScheduler",
    "LambdaDecay",
    "LinearLR",
    "LinearWarmup",
    "MultiStepDecay",
    "MultiplicativeDecay",
    "NaturalExpDecay",
    "NoamDecay",
    "OneCycleLR",
    "PiecewiseDecay",
    "PolynomialDecay",
    "ReduceOnPlateau",
    "StepDecay",
]
