"""`paddle.onnx`: Programs become ONNX models. The extra `onnx` brings the package that it needs, on first use."""

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.onnx.exporting import NotExportable, export

__all__ = ["NotExportable", "export"]

__getattr__ = late_names("dy2st.onnx", {"exporting": "NotExportable export"})
