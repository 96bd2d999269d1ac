"""`paddle.jit`: Programs from Python functions; saving and loading them."""

from typing import TYPE_CHECKING

from dy2st.jit.api import enable_to_static, ignore_module, not_to_static, to_static
from dy2st.jit.code_log import set_code_level, set_verbosity
from dy2st.jit.static_function import StaticFunction
from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.jit.first_calls import verify_first_calls
    from dy2st.jit.saved_files import load, load_state, save, save_state
    from dy2st.jit.translated_layer import TranslatedLayer
    from dy2st.jit.verifying.verify import verify

__getattr__ = late_names(
    __name__,
    {
        "saved_files": "load load_state save save_state",
        "translated_layer": "TranslatedLayer",
        "first_calls": "verify_first_calls",
        "verifying.verify": "verify",
    },
)

__all__ = [
    "StaticFunction",
    "TranslatedLayer",
    "enable_to_static",
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
