"""A project's sources, read and never run: which of Paddle's names they use, and what differs here.

What reads Python to convert it is `pysrc/`; what draws Programs is `viz/`.
"""

from dy2st.project.check import Findings, check_project
from dy2st.project.report import to_html, to_json, to_text

__all__ = ["Findings", "check_project", "to_html", "to_json", "to_text"]
