"""`paddle.jit`: Programs from Python functions; saving and loading them."""

from typing import TYPE_CHECKING

from dy2st.jit.api import enable_to_static, ignore_module, not_to_static, to_static
from dy2st.jit.static_function import StaticFunction
from dy2st.jit.tracing.code_log import set_code_level, set_verbosity
from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.jit.c_library.export import export_library
    from dy2st.jit.dispatch.first_calls import verify_first_calls
    from dy2st.jit.host_steps import host_step
    from dy2st.jit.serialization.io import load, load_state, save, save_state
    from dy2st.jit.serialization.traced_layer import TracedLayer
    from dy2st.jit.serialization.translated_layer import TranslatedLayer
    from dy2st.jit.verifying.verify import verify

__getattr__ = late_names(
    __name__,
    {
        "c_library.export": "export_library",
        "serialization.io": "load load_state save save_state",
        "serialization.traced_layer": "TracedLayer",
        "serialization.translated_layer": "TranslatedLayer",
        "dispatch.first_calls": "verify_first_calls",
        "host_steps": "host_step",
        "verifying.verify": "verify",
    },
)

__all__ = [
    "StaticFunction",
    "TracedLayer",
    "TranslatedLayer",
    "enable_to_static",
    "export_library",
    "host_step",
    "ignore_module",
    "load",
    "load_state",
    "not_to_static",
    "save",
    "save_state",
    "set_code_level",
    "set_verbosity",
    "to_static",
    "verify",
    "verify_first_calls",
]


def __dir__() -> list[str]:
    return __all__
