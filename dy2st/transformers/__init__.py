"""From Python source to Python source whose control flow, calls and accesses ask a helper.

`convert(fn)` gives a `Converted`; `Converted.make(helper)` gives the function. Reading order: converted, conversion,
pipeline (the passes and their reasons), one file a construct, rules (what the last pass does with each node).
"""

from typing import TYPE_CHECKING

from dy2st.late import late_names
from dy2st.transformers.convert import Converted, convert, is_converted_code

if TYPE_CHECKING:
    from dy2st.transformers.conversion import conversion_of
    from dy2st.transformers.pipeline import PASSES

__getattr__ = late_names(__name__, {"conversion": "conversion_of", "pipeline": "PASSES"})

__all__ = ["PASSES", "Converted", "conversion_of", "convert", "is_converted_code"]
