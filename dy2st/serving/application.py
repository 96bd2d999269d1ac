"""The routes of a server, as an ASGI application: what KServe's v2 protocol asks for over HTTP, and `/metrics`.

The event loop reads and writes; models run on threads (`batching.py`). A refusal is one JSON object, {"error": text}.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from dy2st.errors import MissingExtraError
from dy2st.serving.batching import Worker
from dy2st.serving.entries import Entry, load_entries
from dy2st.serving.limits import Limits
from dy2st.serving.metrics import CONTENT_TYPE, Metrics
from dy2st.serving.protocol import LENGTH, Refused, read_request, write_response
from dy2st.version import dy2st as own_version

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_VERSION = "1"
_BINARY = "application/octet-stream"
_MANY = 1 << 16
T = TypeVar("T")


def application(models: Mapping[str, str | os.PathLike[str]], limits: Limits | None = None) -> Starlette:
    """Return an ASGI application that answers for saved models, by name; any ASGI server runs it.

    Models are loaded here, so what is wrong with a file is raised before anything is served.
    """
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError as error:
        raise MissingExtraError("starlette", "serve", "serving models") from error
    server = _Server(models, limits or Limits())

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(server.close)

    routes = [Route("/v2", _answering(server.about)), Route("/metrics", server.metrics_text)]
    routes += [Route(f"/v2/health/{what}", _answering(server.is_up)) for what in ("live", "ready")]
    for stem in ("/v2/models/{model}", "/v2/models/{model}/versions/{version}"):
        routes.append(Route(stem, _answering(server.metadata)))
        routes.append(Route(f"{stem}/ready", _answering(server.is_up)))
        routes.append(Route(f"{stem}/infer", server.infer, methods=["POST"]))
    return Starlette(routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _unknown, Exception: _failed})


class _Server:
    def __init__(self, models: Mapping[str, str | os.PathLike[str]], limits: Limits):
        limits.check()
        for name in models:
            if not name or "/" in name:
                raise ValueError(f"a model's name is a part of an address, and {name!r} cannot be one")
        self._limits, self._metrics = limits, Metrics()
        self._entries: dict[str, tuple[Entry, Worker]] = {}
        loaded = {name: load_entries(name, path) for name, path in models.items()}
        for name, entries in loaded.items():
            worker = Worker(name, limits, self._metrics)
            for key, entry in entries.items():
                if key in self._entries:
                    raise ValueError(f"two entries are named {key!r}: give one of the models another name")
                self._entries[key] = entry, worker

    def close(self) -> None:
        """Run what was accepted, and end the threads."""
        for worker in {id(w): w for _, w in self._entries.values()}.values():
            worker.close()

    # ---- questions that cost nothing
    def about(self, request: Request) -> dict[str, Any]:
        """Answer who this is."""
        return {"name": "dy2st", "version": own_version, "extensions": ["binary_tensor_data"]}

    def is_up(self, request: Request) -> dict[str, Any]:
        """Answer that the server, or a model, is there."""
        if "model" in request.path_params:
            self._found(request)
        return {}

    def metadata(self, request: Request) -> dict[str, Any]:
        """Answer what a model takes and gives."""
        entry, _ = self._found(request)
        inputs, outputs = ([slot.to_json() for slot in slots] for slots in (entry.inputs, entry.outputs))
        head = {"name": entry.name, "versions": [_VERSION], "platform": "dy2st"}
        return {**head, "inputs": inputs, "outputs": outputs, "parameters": {"batched": not entry.apart}}

    async def metrics_text(self, request: Request) -> Response:
        """Answer with all counters."""
        from starlette.responses import Response

        return Response(self._metrics.text(), headers={"content-type": CONTENT_TYPE})

    # ---- inference
    async def infer(self, request: Request) -> Response:
        """Answer a request for outputs; whatever is wrong with it is one JSON object and one status."""
        from starlette.requests import ClientDisconnect

        begun, name, extra = time.monotonic(), "", {}
        try:
            async with asyncio.timeout(self._limits.max_seconds):
                name = self._found(request)[0].name
                response = await self._inferred(request)
        except Refused as refusal:
            extra = {"retry-after": "1"} if refusal.status == 503 else {}
            response = _json({"error": str(refusal)}, refusal.status, extra)
        except TimeoutError:
            response = _json({"error": f"no answer after {self._limits.max_seconds:g} s"}, 504)
        except ClientDisconnect:
            response = _json({"error": "the request ended too early"}, 400)
        self._metrics.answered(name, response.status_code, time.monotonic() - begun)
        return response

    async def _inferred(self, request: Request) -> Response:
        from starlette.responses import Response

        entry, worker = self._found(request)
        body = await self._body(request)
        asked = await _aside(len(body), read_request, body, request.headers.get(LENGTH))
        outputs = await asyncio.wrap_future(worker.submit(entry, entry.checked(asked.inputs)))
        size = sum(array.nbytes for array in outputs.values())
        content, length = await _aside(size, write_response, entry.name, asked, outputs)
        if length is None:
            return Response(content, media_type="application/json")
        return Response(content, media_type=_BINARY, headers={LENGTH: str(length)})

    async def _body(self, request: Request) -> bytes:
        """Read the body, and no more of it than is allowed."""
        most = self._limits.max_bytes
        said = request.headers.get("content-length", "0")
        too_long = Refused(413, f"a request has at most {most:,} bytes")
        if request.headers.get("content-encoding", "identity") != "identity":
            raise Refused(415, "a request is not compressed")
        if said.isdigit() and int(said) > most:
            raise too_long
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.max_seconds / 2):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise too_long
        except TimeoutError as error:
            raise Refused(408, f"the request was not there after {self._limits.max_seconds / 2:g} s") from error
        return bytes(body)

    def _found(self, request: Request) -> tuple[Entry, Worker]:
        name, version = request.path_params["model"], request.path_params.get("version", _VERSION)
        if name not in self._entries or version != _VERSION:
            raise Refused(404, f"there is no model {name!r:.60} of version {version!r:.20}")
        return self._entries[name]


async def _aside(size: int, work: Callable[..., T], *arguments: Any) -> T:
    """Do what takes long on many bytes off the event loop."""
    return await asyncio.to_thread(work, *arguments) if size > _MANY else work(*arguments)


def _answering(answer: Callable[[Request], dict[str, Any]]) -> Callable[[Request], Any]:
    async def respond(request: Request) -> Response:
        try:
            return _json(answer(request))
        except Refused as refusal:
            return _json({"error": str(refusal)}, refusal.status)

    return respond


def _json(data: dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    from starlette.responses import JSONResponse

    return JSONResponse(data, status, headers)


async def _unknown(request: Request, error: Any) -> Response:
    return _json(
        {"error": f"{request.method} {request.url.path[:100]}: {error.detail}"}, error.status_code, error.headers
    )


async def _failed(request: Request, error: Exception) -> Response:
    return _json({"error": f"the server failed: {type(error).__name__}"}, 500)
