"""Weights of other frameworks in Layers of this one: what their names are called here, and how they lie."""

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.interop.torch_weights import LoadedState, load_torch_state

__all__ = ["LoadedState", "load_torch_state"]

__getattr__ = late_names("dy2st.interop", {"torch_weights": "LoadedState load_torch_state"})
