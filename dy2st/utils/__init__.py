"""`paddle.utils`: nested structures, and names that count up."""

from dy2st.missing import missing_in
from dy2st.runtime.eager import unique_name
from dy2st.utils.structures import assert_same_structure, flatten, is_sequence, map_structure, pack_sequence_as

__getattr__ = missing_in(__name__)

__all__ = ["assert_same_structure", "flatten", "is_sequence", "map_structure", "pack_sequence_as", "unique_name"]
