"""Pages in headless Chromium, driven by commands of the DevTools protocol, and the server they are on."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PATH = next((found for name in _NAMES if (found := shutil.which(name))), None)
needs_chromium = pytest.mark.skipif(PATH is None, reason="Chromium is not installed")


class Page:
    """A page of a browser, which evaluates JavaScript."""

    def __init__(self, to: int, back: int):
        self._to, self._back, self._number, self._rest = to, back, 0, b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    _session: str | None = None

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give a command of the protocol and return its result."""
        self._number += 1
        said = {"id": self._number, "method": method, "params": params}
        if self._session:
            said["sessionId"] = self._session
        os.write(self._to, json.dumps(said).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._back, 1 << 20)
            assert more, "the browser has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def run(self, script: str) -> Any:
        """Return what the body of an async function returns in the page."""
        body = f"(async () => {{ {script} }})()"
        made = self.send("Runtime.evaluate", expression=body, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def open(self, url: str, ready: str) -> None:
        """Go to a page and wait, at most a minute, until an expression is true there."""
        self.send("Page.navigate", url=url)
        self.wait(ready)

    def wait(self, ready: str) -> None:
        """Wait until an expression is true; AssertionError with the page's text after a minute."""
        done = self.run(f"""
            for (let i = 0; i < 1200; i++) {{
              try {{ if ({ready}) return true; }} catch {{}}
              await new Promise((then) => setTimeout(then, 50));
            }}
            return false;
        """)
        assert done, self.run("return document.body.innerText")

    def screenshot(self, path: Path, width: int = 1000, height: int = 1400) -> None:
        """Write what the page looks like as PNG."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot")["data"]))


@contextmanager
def page() -> Iterator[Page]:
    """Start a browser with a page, and end it."""
    assert PATH is not None
    their_read, to = os.pipe()
    back, their_write = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --remote-debugging-pipe"
        order = f'exec "{PATH}" {flags} --user-data-dir="{profile}" 3<&{their_read} 4>&{their_write}'
        browser = subprocess.Popen(
            ["bash", "-c", order], pass_fds=(their_read, their_write), stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(their_read)
        os.close(their_write)
        try:
            yield Page(to, back)
        finally:
            os.close(to)
            browser.terminate()
            browser.wait(30)
            os.close(back)


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine, and yield where."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
