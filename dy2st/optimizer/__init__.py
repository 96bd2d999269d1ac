"""Optimizers: rules that update parameters by their gradients."""

from dy2st.missing import missing_in
from dy2st.optimizer import lr
from dy2st.optimizer.adam import Adam, Adamax, AdamW, Lamb, NAdam, RAdam
from dy2st.optimizer.adaptive import Adadelta, Adagrad, RMSProp
from dy2st.optimizer.first_order import ASGD, SGD, Momentum, Rprop
from dy2st.optimizer.lbfgs import LBFGS
from dy2st.optimizer.optimizer import Optimizer

__getattr__ = missing_in(__name__)

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
