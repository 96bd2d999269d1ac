"""How each op is written in ONNX, a file for each family. What has no rule is refused by its name and line."""

from dy2st.onnx.writing import control_flow
from dy2st.onnx.writing.rules import (
    creation,
    derivatives,
    elementwise,
    indexing,
    lists,
    normalization,
    products,
    reductions,
    scalars,
    scans,
    shapes,
    sorting,
    variants,
    windows,
    without,
)
from dy2st.onnx.writing.writer import RULES, WHOLE

__all__ = ["RULES", "WHOLE"]
