"""Saved models over HTTP: the Open Inference Protocol (KServe v2) on Starlette and uvicorn, with dynamic batching.

What is asked and answered is in `protocol.py`, what is run in `entries.py`, which requests may be one batch in
`independent_rows.py`, the queue in `batching.py`. The extra `serve` has the packages, which load on first use.
"""

from dy2st.serving.application import application
from dy2st.serving.limits import Limits
from dy2st.serving.server import serve

__all__ = ["Limits", "application", "serve"]
