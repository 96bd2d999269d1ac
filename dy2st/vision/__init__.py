"""`paddle.vision`: models for images."""

from dy2st.missing import missing_in
from dy2st.vision import models

__getattr__ = missing_in(__name__)

__all__ = ["models"]
