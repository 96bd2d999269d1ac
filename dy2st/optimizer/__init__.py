"""Optimizers: rules that update parameters by their gradients."""

from typing import TYPE_CHECKING

from dy2st.late import late_names
from dy2st.optimizer import lr

if TYPE_CHECKING:
    from dy2st.optimizer.adam import Adam, Adamax, AdamW, Lamb, NAdam, RAdam
    from dy2st.optimizer.adaptive import Adadelta, Adagrad, RMSProp
    from dy2st.optimizer.first_order import ASGD, SGD, Momentum, Rprop
    from dy2st.optimizer.lbfgs import LBFGS
    from dy2st.optimizer.optimizer import Optimizer

__getattr__ = late_names(
    __name__,
    {
        "adam": "Adam Adamax AdamW Lamb NAdam RAdam",
        "adaptive": "Adadelta Adagrad RMSProp",
        "first_order": "ASGD SGD Momentum Rprop",
        "lbfgs": "LBFGS",
        "optimizer": "Optimizer",
    },
)

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Lamb",
    "Momentum",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSProp",
    "Rprop",
    "lr",
]


def __dir__() -> list[str]:
    return __all__
