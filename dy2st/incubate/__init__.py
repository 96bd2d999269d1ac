"""What Paddle keeps under `incubate`: derivatives of functions in `incubate.autograd`."""

from dy2st.incubate import autograd

__all__ = ["autograd"]
