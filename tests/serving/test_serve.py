"""`dy2st serve` as a process: the protocol, refusals, batches, limits and the end; nothing leaves this machine."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

import httpx
import numpy as np
import pytest

import dy2st as paddle
from dy2st.serving.protocol import LENGTH
from dy2st.static import InputSpec

ROOT = Path(__file__).parents[2]
X = np.array([[1, -2, 3, 4], [0, 0, 0, 1]], "float32")


class Two(paddle.nn.Layer):
    """A model of two methods, one of whose inputs is a number."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = paddle.nn.Linear(4, 2)

    def forward(self, x: Any) -> Any:
        y = self.linear(x)
        return {"y": y, "best": y.argmax(1)}

    @paddle.jit.to_static(input_spec=[InputSpec([None], "int64"), 3])
    def picked(self, places: Any, scale: Any) -> Any:
        return paddle.arange(5, dtype="float32")[places] * scale


def halved(x: Any, n: Any) -> Any:
    while n > 0:
        x = x / 2 + 1e-3
        n = n - 1
    return x


class Server:
    """A running `dy2st serve`."""

    def __init__(self, *arguments: Any) -> None:
        command = [sys.executable, "-m", "dy2st", "serve", *map(str, arguments), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        found = re.search(r"http://127.0.0.1:(\d+)", self.process.stdout.readline())
        assert found, "the server says where it listens"
        self.port = int(found[1])
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=60, trust_env=False)

    def infer(self, model: str, **arrays: np.ndarray) -> httpx.Response:
        return self.client.post(f"/v2/models/{model}/infer", json={"inputs": listed(arrays)})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.end()

    def end(self) -> int:
        self.client.close()
        self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(30)
        finally:
            self.process.kill()
            assert self.process.stdout is not None
            self.process.stdout.close()


DATATYPES = {"float32": "FP32", "float64": "FP64", "int64": "INT64"}


def listed(arrays: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    return [
        {
            "name": n,
            "shape": list(a.shape),
            "datatype": DATATYPES[a.dtype.name],
            "data": a.tolist() if a.ndim else [a.item()],
        }
        for n, a in arrays.items()
    ]


@pytest.fixture(scope="module")
def models(tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("models")
    paddle.seed(3)
    paddle.jit.save(Two(), folder / "two", input_spec=[InputSpec([None, 4])])
    specs = [InputSpec([None]), InputSpec([], "int64")]
    paddle.jit.save(paddle.jit.to_static(halved), folder / "halved", input_spec=specs)
    return folder


@pytest.fixture(scope="module")
def server(models: Path) -> Iterator[Server]:
    limits = ("--max-size", "0.1", "--max-seconds", "6", "--max-delay", "50")
    running = Server(models / "two.dy2st", f"slow={models / 'halved'}", *limits)
    yield running
    assert running.end() == 0


def test_health_and_metadata(server: Server) -> None:
    get = server.client.get
    for path in ("health/live", "health/ready", "models/two/ready", "models/two/versions/1/ready"):
        assert get(f"/v2/{path}").json() == {}
    assert get("/v2").json()["extensions"] == ["binary_tensor_data"]
    said = get("/v2/models/two").json()
    assert said["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 4]}]
    assert [o["name"] for o in said["outputs"]] == ["output_y", "output_best"]
    assert said["parameters"] == {"batched": True}
    assert get("/v2/models/two.picked").json()["inputs"][0] == {"name": "places", "datatype": "INT64", "shape": [-1]}


def test_json(server: Server, models: Path) -> None:
    y = paddle.jit.load(models / "two")(paddle.to_tensor(X))["y"].numpy()
    body = {"id": "7", "inputs": listed({"x": X}), "outputs": [{"name": "output_y"}]}
    answer = server.client.post("/v2/models/two/versions/1/infer", json=body).json()
    assert (answer["id"], answer["model_name"], answer["model_version"]) == ("7", "two", "1")
    (output,) = answer["outputs"]
    assert (output["name"], output["shape"], output["datatype"]) == ("output_y", [2, 2], "FP32")
    np.testing.assert_array_equal(np.float32(output["data"]).reshape(2, 2), y)


def test_binary_tensors(server: Server, models: Path) -> None:
    y = paddle.jit.load(models / "two")(paddle.to_tensor(X))["y"].numpy()
    said = {"name": "x", "shape": [2, 4], "datatype": "FP32", "parameters": {"binary_data_size": X.nbytes}}
    outputs = [{"name": "output_y", "parameters": {"binary_data": True}}, {"name": "output_best"}]
    head = json.dumps({"inputs": [said], "outputs": outputs}).encode()
    found = server.client.post("/v2/models/two/infer", content=head + X.tobytes(), headers={LENGTH: str(len(head))})
    length = int(found.headers[LENGTH])
    answer = json.loads(found.content[:length])
    assert answer["outputs"][0]["parameters"] == {"binary_data_size": y.nbytes}
    np.testing.assert_array_equal(np.frombuffer(found.content[length:], "<f4").reshape(2, 2), y)
    assert answer["outputs"][1]["data"] == y.argmax(1).tolist()


GOOD = {"name": "x", "shape": [1, 4], "datatype": "FP32", "data": [1, 2, 3, 4]}
HOSTILE = {
    "no json": (b"{", "not valid JSON"),
    "no text": (b"\xff\xfe", "utf-8"),
    "deep": (b"[" * 60_000, "nested too deeply"),
    "a list": ([], "is a JSON object"),
    "no inputs": ({}, "no 'inputs'"),
    "NaN": (b'{"inputs": [NaN]}', "not a number"),
    "twice": (b'{"inputs": [], "inputs": []}', "there twice"),
    "unknown field": ({"inputs": [GOOD], "run": "rm"}, "not known"),
    "unknown input": ({"inputs": [{**GOOD, "name": "z"}]}, "no input 'z'"),
    "missing": ({"inputs": []}, "'x' is missing"),
    "two of a name": ({"inputs": [GOOD, GOOD]}, "there twice"),
    "unknown output": ({"inputs": [GOOD], "outputs": [{"name": "z"}]}, "no output 'z'"),
    "rank": ({"inputs": [{**GOOD, "shape": [4]}]}, "has shape [4]"),
    "extent": ({"inputs": [{**GOOD, "shape": [1, 3], "data": [1, 2, 3]}]}, "has shape [1, 3]"),
    "negative": ({"inputs": [{**GOOD, "shape": [-1, 4]}]}, "is no shape"),
    "huge": ({"inputs": [{**GOOD, "shape": [2**39, 2**39]}]}, "is not of shape"),
    "rank 64": ({"inputs": [{**GOOD, "shape": [1] * 64}]}, "is no shape"),
    "ragged": ({"inputs": [{**GOOD, "data": [[1], [2, 3]]}]}, "is no array"),
    "words": ({"inputs": [{**GOOD, "data": ["1", "2", "3", "4"]}]}, "numbers of a float32"),
    "null": ({"inputs": [{**GOOD, "data": [None, 2, 3, 4]}]}, "numbers of a float32"),
    "too large": ({"inputs": [{**GOOD, "data": [1e300, 2, 3, 4]}]}, "too large"),
    "dtype": ({"inputs": [{**GOOD, "datatype": "INT64"}]}, "is INT64"),
    "no dtype": ({"inputs": [{**GOOD, "datatype": "os"}]}, "is none of"),
    "both": ({"inputs": [{**GOOD, "parameters": {"binary_data_size": 16}}]}, "either"),
    "bytes that are not there": (
        {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP32", "parameters": {"binary_data_size": 16}}]},
        "0 do"),
    "flag": ({"inputs": [GOOD], "outputs": [{"name": "output_y", "parameters": {"binary_data": 1}}]}, "true or false"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_request_is_one_clear_error(name: str, server: Server) -> None:
    body, text = HOSTILE[name]
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    found = server.client.post("/v2/models/two/infer", content=content)
    assert found.status_code == 400
    assert text in found.json()["error"]
    assert len(found.content) < 1200


@pytest.mark.parametrize(
    ("header", "body"), [("-1", b"{}"), ("9" * 30, b"{}"), ("3", b"{}"), ("two", b"{}"), ("2", b'{"inputs": []}')]
)
def test_lengths_that_lie(header: str, body: bytes, server: Server) -> None:
    assert server.client.post("/v2/models/two/infer", content=body, headers={LENGTH: header}).status_code == 400


def test_other_refusals(server: Server) -> None:
    post, get = server.client.post, server.client.get
    assert post("/v2/models/none/infer", json={}).status_code == 404
    assert get("/v2/models/two/versions/2").status_code == 404
    assert get("/v2/models/two/infer").status_code == 405
    assert get("/../../etc/passwd").status_code == 404
    assert get("/v2/models/..%2f..%2fetc%2fpasswd").status_code == 404
    assert post("/v2/models/two/infer", content=b" " * 200_000).status_code == 413
    assert post("/v2/models/two/infer", content=iter([b" " * 60_000] * 3)).status_code == 413  # of unknown length
    assert post("/v2/models/two/infer", content=b"", headers={"content-encoding": "gzip"}).status_code == 415


def test_what_the_model_raises_is_an_answer(server: Server) -> None:
    answer = server.infer("two.picked", places=np.array([9]))
    assert answer.status_code == 400
    assert "the model raised" in answer.json()["error"]
    assert server.infer("two.picked", places=np.array([2])).json()["outputs"][0]["data"] == [6.0]


@pytest.mark.parametrize(
    "sent", [b"\0" * 1000, b"POST / HTTP/9\r\n\r\n", b"GET " + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
             b"POST /v2/models/two/infer HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
             b"POST /v2/models/two/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{"]
)  # fmt: skip
def test_broken_http_harms_nobody(sent: bytes, server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection, contextlib.suppress(OSError):
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(12) in (b"", b"HTTP/1.1 400")
    assert server.client.get("/v2/health/live").status_code == 200


def test_a_request_that_never_comes_or_never_ends(server: Server) -> None:
    with socket.create_connection(("127.0.0.1", server.port), 5) as connection:
        connection.sendall(b"POST /v2/models/two/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 99\r\n\r\n{")
        endless = server.infer("slow", x=np.ones(4, "float32"), n=np.array(40_000_000))
        assert endless.status_code == 504
        assert server.client.get("/v2/health/live").status_code == 200
        connection.settimeout(5)
        assert connection.recv(12) == b"HTTP/1.1 408"


def test_requests_become_batches_and_metrics_count_them(server: Server, models: Path) -> None:
    layer = paddle.jit.load(models / "two")
    rng = np.random.default_rng(0)
    xs = [rng.normal(size=(1 + i % 3, 4)).astype("float32") for i in range(24)]
    before = counts(server)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda x: server.infer("two", x=x), xs))
    for x, answer in zip(xs, answers, strict=True):
        found = np.float32(answer.json()["outputs"][0]["data"]).reshape(-1, 2)
        np.testing.assert_allclose(found, layer(paddle.to_tensor(x))["y"].numpy(), 1e-5, 1e-6)
    after = counts(server)
    assert after['dy2st_requests_total{model="two",status="200"}'] >= 24
    name = 'dy2st_batch_requests_count{model="two"}'
    assert 0 < after[name] - before.get(name, 0) < 24
    assert after['dy2st_queue_requests{model="two"}'] == 0


def counts(server: Server) -> dict[str, float]:
    answer = server.client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line.rpartition(" ") for line in answer.text.splitlines() if line[0] != "#"]
    return {name: float(value) for name, _, value in lines}


def test_too_many_requests_are_refused_at_once(models: Path) -> None:
    with Server(models / "halved.dy2st", "--max-queue", "2", "--max-seconds", "20") as server:
        ask = lambda _: server.infer("halved", x=np.ones(4, "float32"), n=np.array(20_000)).status_code
        with ThreadPoolExecutor(12) as pool:
            found = list(pool.map(ask, range(12)))
        assert set(found) == {200, 503}
        assert found.count(200) >= 3


def test_nothing_accepted_is_lost_on_sigterm(models: Path) -> None:
    with Server(models / "halved.dy2st", "--max-queue", "64", "--max-seconds", "30") as server:
        x = {"x": np.ones(4, "float32"), "n": np.array(20_000)}
        with ThreadPoolExecutor(12) as pool:
            asked = [pool.submit(server.infer, "halved", **x) for _ in range(12)]
            deadline = time.monotonic() + 20
            while counts(server)['dy2st_queue_requests{model="halved"}'] < 11 and time.monotonic() < deadline:
                time.sleep(0.01)
            server.process.send_signal(signal.SIGTERM)
        assert [a.result().status_code for a in asked] == [200] * 12
        assert server.process.wait(30) == 0
        with pytest.raises(httpx.ConnectError):
            server.client.get("/v2/health/live")


def test_a_port_that_is_taken_is_one_line(server: Server, models: Path) -> None:
    from dy2st.serving import serve

    with pytest.raises(OSError, match="in use"):
        serve({"two": models / "two.dy2st"}, port=server.port)


def test_a_model_that_is_not_there_or_not_ours(tmp_path: Path) -> None:
    (tmp_path / "bad.dy2st").write_bytes(b"no model")
    for path in (tmp_path / "none", tmp_path / "bad.dy2st"):
        command = [sys.executable, "-m", "dy2st", "serve", str(path), "--port", "0"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        made = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert made.returncode == 1
        assert len(made.stderr.splitlines()) == 1
