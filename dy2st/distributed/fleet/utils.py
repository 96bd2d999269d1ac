"""Helpers for training: `recompute`."""

from dy2st.autograd.recompute import recompute
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["recompute"]
