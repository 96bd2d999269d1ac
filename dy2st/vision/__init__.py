"""`paddle.vision`: models and transforms for images."""

from dy2st.missing import missing_in
from dy2st.vision import models, transforms

__getattr__ = missing_in(__name__)

__all__ = ["models", "transforms"]
