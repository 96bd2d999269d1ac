"""`jit.verify`: whether a function does the same eagerly and as a Program, and where it does not."""

from dy2st.jit.verifying.report import Difference, Verification

__all__ = ["Difference", "Verification"]
