"""Names that nothing else has."""

from dy2st.runtime.eager.unique_name import generate, guard, switch

__all__ = ["generate", "guard", "switch"]
