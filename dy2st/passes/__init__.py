"""Passes: Program in, Program out. `pipelines.py` lists the orders in which they run."""

from dy2st.passes.core.base import Pass, run_pipeline
from dy2st.passes.pipelines import DEFAULT, optimise

__all__ = ["DEFAULT", "Pass", "optimise", "run_pipeline"]
