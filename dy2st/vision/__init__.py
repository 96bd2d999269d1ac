"""`paddle.vision`: models and transforms for images, operations of detectors."""

from dy2st.missing import missing_in
from dy2st.vision import models, ops, transforms

__getattr__ = missing_in(__name__)

__all__ = ["models", "ops", "transforms"]
