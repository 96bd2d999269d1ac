"""`paddle.onnx`: Programs become ONNX models, and models Layers; by the package of the extra `onnx`, on first use."""

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.onnx.exporting import NotExportable, export
    from dy2st.onnx.loading import load

__all__ = ["NotExportable", "export", "load"]

__getattr__ = late_names("dy2st.onnx", {"exporting": "NotExportable export", "loading": "load"})
