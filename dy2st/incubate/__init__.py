"""What Paddle keeps under `incubate`: derivatives of functions in `incubate.autograd`."""

from dy2st.incubate import autograd
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["autograd"]
