"""Native code that stands in the place of a method written in Python, and calls that where something is unusual.

It has no owner as a builtin function has one, so the plate is a symbol, which stands for the array object of the plate:
behind what other plates have (entry.py) come words of the module's own, the variable of the current context first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.ir.context import _CURRENT  # pyright: ignore[reportPrivateUsage]
from dy2st.runtime.aot_cache.artifacts import Product
from dy2st.runtime.backends.cpu.compile_link.code_loader import Code, load, provide
from dy2st.runtime.backends.cpu.python_abi import cpython_symbols as api

VARIABLE = api.BEHIND
OWN = VARIABLE + 8
"""Where the words of a module begin."""


def loaded(product: Product, symbol: str, words: list[int], keeps: Any) -> Code:
    """Load the code of methods whose plate has these words of its own; `keeps` holds the objects among them."""
    plate = np.array([0, 0, *api.addresses(), id(_CURRENT), *words], np.int64)
    api.keep_for_good((plate, keeps))
    provide(symbol, lambda: id(plate))
    return load(product.binary)
