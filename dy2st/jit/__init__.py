"""`paddle.jit`: Programs from Python functions; saving and loading them."""

from dy2st.jit.api import enable_to_static, ignore_module, not_to_static, to_static
from dy2st.jit.static_function import StaticFunction

__all__ = ["StaticFunction", "enable_to_static", "ignore_module", "not_to_static", "to_static"]
