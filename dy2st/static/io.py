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
from dy2st.static.serialized import (
    deserialize_persistables,
    deserialize_program,
    load_from_file,
    normalize_program,
    save_to_file,
    serialize_persistables,
    serialize_program,
)

__getattr__ = missing_in(__name__)

__all__ = [
    "deserialize_persistables",
    "deserialize_program",
    "load",
    "load_from_file",
    "load_inference_model",
    "load_program_state",
    "normalize_program",
    "save",
    "save_inference_model",
    "save_to_file",
    "serialize_persistables",
    "serialize_program",
    "set_program_state",
]
