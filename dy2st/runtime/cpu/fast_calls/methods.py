"""Native code that stands in the place of a method written in Python, and calls that where something is unusual.

It has no owner as a builtin function has one, so the plate is a symbol, which stands for the array object of the plate:
behind what other plates have (entry.py) come words of the module's own, the variable of the current context first.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dy2st.ir.context import _CURRENT  # pyright: ignore[reportPrivateUsage]
from dy2st.runtime.cpu.calls import python_api as api
from dy2st.runtime.cpu.kept.products import Product
from dy2st.runtime.cpu.machine_code.engine import Code, load, provide

VARIABLE = api.BEHIND
OWN = VARIABLE + 8
"""Where the words of a module begin."""


def loaded(product: Product, symbol: str, words: list[int], keeps: Any) -> Code:
    """Load the code of methods whose plate has these words of its own; `keeps` holds the objects among them."""
    plate = np.array([0, 0, *api.addresses(), id(_CURRENT), *words], np.int64)
    api.keep_for_good((plate, keeps))
    provide(symbol, lambda: id(plate))
    return load(product.binary)
