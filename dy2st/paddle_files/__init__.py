"""Models that PaddlePaddle saved: ProgramDesc (`.pdmodel`) and PIR (`.json`), with their weights, become Programs."""

from typing import TYPE_CHECKING

from dy2st.late import late_names

if TYPE_CHECKING:
    from dy2st.paddle_files.loading import found, load
    from dy2st.paddle_files.static_program import load_program

__all__ = ["found", "load", "load_program"]

__getattr__ = late_names("dy2st.paddle_files", {"loading": "found load", "static_program": "load_program"})
