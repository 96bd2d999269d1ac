"""What each operation does, a file for each family; the names are those of PIR, without a last underscore."""

from dy2st.paddle_files.rules import (
    activations,
    control,
    creation,
    detection,
    elementwise,
    indexing,
    layers,
    losses,
    pooling,
    recurrent,
    reductions,
    shapes,
)
from dy2st.paddle_files.runner import RULES

__all__ = ["RULES"]
