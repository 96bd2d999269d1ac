"""Passes: Program in, Program out. `DEFAULT` is the order in which they run."""

from dy2st.passes.base import Pass, run_pipeline
from dy2st.passes.pipeline import DEFAULT, optimise

__all__ = ["DEFAULT", "Pass", "optimise", "run_pipeline"]
