"""`paddle.utils`: nested structures, names that count up, modules that may be missing, files that lie here already."""

from dy2st.missing import missing_in
from dy2st.runtime.eager import unique_name
from dy2st.utils import download
from dy2st.utils.deprecation import deprecated
from dy2st.utils.installed import require_version, run_check, try_import
from dy2st.utils.structures import assert_same_structure, flatten, is_sequence, map_structure, pack_sequence_as

__getattr__ = missing_in(__name__)

__all__ = [
    "assert_same_structure",
    "deprecated",
    "download",
    "flatten",
    "is_sequence",
    "map_structure",
    "pack_sequence_as",
    "require_version",
    "run_check",
    "try_import",
    "unique_name",
]
