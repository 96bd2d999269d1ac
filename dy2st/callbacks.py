"""`paddle.callbacks`: what can watch a Model."""

from dy2st.hapi.callback import Callback
from dy2st.hapi.progress import ProgBarLogger
from dy2st.hapi.watching import EarlyStopping, LRScheduler, ModelCheckpoint, ReduceLROnPlateau
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["Callback", "EarlyStopping", "LRScheduler", "ModelCheckpoint", "ProgBarLogger", "ReduceLROnPlateau"]
