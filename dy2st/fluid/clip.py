"""1.x's names of gradient clipping."""

from dy2st.nn.clip import ClipGradByGlobalNorm as GradientClipByGlobalNorm
from dy2st.nn.clip import ClipGradByNorm as GradientClipByNorm
from dy2st.nn.clip import ClipGradByValue as GradientClipByValue

__all__ = ["GradientClipByGlobalNorm", "GradientClipByNorm", "GradientClipByValue"]
