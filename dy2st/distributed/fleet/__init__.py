"""What Paddle keeps under `distributed.fleet`: `utils.recompute`."""

from dy2st.distributed.fleet import utils
from dy2st.missing import missing_in

__getattr__ = missing_in(__name__)

__all__ = ["utils"]
