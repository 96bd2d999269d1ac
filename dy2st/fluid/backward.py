"""1.x's `fluid.backward`: derivatives in a hand-built Program."""

from dy2st.static import append_backward, gradients

__all__ = ["append_backward", "gradients"]
