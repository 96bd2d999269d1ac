"""From Python source to Python source whose control flow, calls and accesses ask a helper.

`convert(fn)` gives a `Converted`; `Converted.make(helper)` gives the function. Reading order: pipeline (the passes and
their reasons), one file a construct, rules (what the last pass does with each node), convert.
"""

from dy2st.transformers.convert import Converted, convert, is_converted_code
from dy2st.transformers.pipeline import PASSES

__all__ = ["PASSES", "Converted", "convert", "is_converted_code"]
