"""The high-level face: `Model` trains, evaluates and runs a network; callbacks watch it."""

from dy2st.hapi.callback import Callback
from dy2st.hapi.flops import flops
from dy2st.hapi.model import Model
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["Callback", "Model", "flops"]
