"""Learning-rate schedulers."""

from typing import TYPE_CHECKING

from dy2st.late import late_names
from dy2st.optimizer.lr.base import LRScheduler

if TYPE_CHECKING:
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

__getattr__ = late_names(
    __name__,
    {
        "cycle": "CyclicLR LinearWarmup OneCycleLR ReduceOnPlateau",
        "decay": "CosineAnnealingDecay CosineAnnealingWarmRestarts ExponentialDecay InverseTimeDecay LambdaDecay "
        "LinearLR MultiplicativeDecay MultiStepDecay NaturalExpDecay NoamDecay PiecewiseDecay PolynomialDecay "
        "StepDecay",
    },
)

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


def __dir__() -> list[str]:
    return __all__
