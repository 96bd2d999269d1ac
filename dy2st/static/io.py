"""`paddle.static.io`: hand-built Programs in files."""

from dy2st.missing import missing_in
from dy2st.static.model_files import (
    load,
    load_inference_model,
    load_program_state,
    save,
    save_inference_model,
    set_program_state,
)

__getattr__ = missing_in(__name__)

__all__ = [
    "load",
    "load_inference_model",
    "load_program_state",
    "save",
    "save_inference_model",
    "set_program_state",
]
