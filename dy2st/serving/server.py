"""`dy2st serve`: the application in uvicorn, from a socket that listens to an end that loses nothing.

On SIGTERM or SIGINT no connection is accepted any more; requests that came in are answered, queues are run empty, and
the process ends with status 0.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from typing import Any

from dy2st.errors import MissingExtraError
from dy2st.serving.application import application
from dy2st.serving.limits import Limits


def serve(
    models: Mapping[str, str | os.PathLike[str]],
    host: str = "127.0.0.1",
    port: int = 8000,
    limits: Limits | None = None,
) -> None:
    """Serve saved models, by name, until a signal ends it; port 0 takes a free one. Prints one line when it listens."""
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtraError("uvicorn", "serve", "serving models") from error
    limits = limits or Limits()
    made: Any = application(models, limits)
    config = uvicorn.Config(
        made, host=host, port=port, lifespan="on", log_level="warning", access_log=False, server_header=False,
        limit_concurrency=limits.max_connections, timeout_keep_alive=10, backlog=limits.max_connections,
        timeout_graceful_shutdown=int(limits.max_seconds) + 1,
    )  # fmt: skip
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family, backlog=limits.max_connections)
    address, number = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    print(f"dy2st: {', '.join(models)} on http://{shown}:{number}", flush=True)
    before = [(number, signal.signal(number, _end)) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        uvicorn.Server(config).run(sockets=[listening])  # on return it raises the signal that ended it once more
    finally:
        listening.close()
        for number, handler in before:
            signal.signal(number, handler)


def _end(number: int, frame: Any) -> None:
    """Do nothing: the server has ended by then."""
