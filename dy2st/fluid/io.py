"""1.x's `fluid.io`: saving and loading of hand-built Programs; everything loads on first use."""

from __future__ import annotations

import importlib as _importlib
from typing import Any as _Any

_LAZY = {
    "load_inference_model": "dy2st.static",
    "save_inference_model": "dy2st.static",
    "load_program_state": "dy2st.static",
    "set_program_state": "dy2st.static",
    "DataLoader": "dy2st.io",
    "batch": "dy2st.io",
}


def __getattr__(name: str) -> _Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'dy2st.fluid.io' has no attribute {name!r}")
    return getattr(_importlib.import_module(_LAZY[name]), name)
