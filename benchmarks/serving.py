"""Requests a second of `dy2st serve` over loopback beside plain calls in one process, and how long requests take.

    python benchmarks/serving.py [--requests 2000] [--clients 32]

The client is this process: so many connections, each sending its next request of one row when the last one is answered.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dy2st as paddle
from dy2st.serving.entries import load_entries
from dy2st.static import InputSpec
from dy2st.vision.models import LeNet

ROOT = Path(__file__).parents[1]
nn = paddle.nn
MODELS = {
    "LeNet": (LeNet, [1, 28, 28]),
    "MLP 784-4096-4096-10": (
        lambda: nn.Sequential(nn.Linear(784, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)),
        [784]),
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--clients", type=int, default=32)
    options = parser.parse_args()
    print("| model | plain calls/s | served, batches of 1 | p50, p99 ms | served, batches of 32 | p50, p99 ms |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, (make, shape) in MODELS.items():
            layer = make()
            layer.eval()
            path = paddle.jit.save(layer, Path(folder) / "m", input_spec=[InputSpec([None, *shape])])
            cells = [f"{plain(path, shape, options.requests):,.0f}"]
            for rows in (1, 32):
                rate, times = asyncio.run(served(path, shape, rows, options.requests, options.clients))
                cells += [f"{rate:,.0f}", "{:.1f}, {:.1f}".format(*np.percentile(times, [50, 99]) * 1e3)]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


def plain(path: Path, shape: list[int], count: int) -> float:
    """Return how many calls a second one process makes, one row each."""
    layer: Any = paddle.jit.load(path)
    layer.eval()
    x = paddle.rand([1, *shape])
    with paddle.no_grad():
        for _ in range(100):
            layer(x).numpy()
        begun = time.perf_counter()
        for _ in range(count):
            layer(x).numpy()
        return count / (time.perf_counter() - begun)


async def served(path: Path, shape: list[int], rows: int, count: int, clients: int) -> tuple[float, np.ndarray]:
    """Return requests a second, and the seconds of each."""
    command = [sys.executable, "-m", "dy2st", "serve", str(path), "--port", "0", "--max-batch", str(rows)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r":(\d+)$", server.stdout.readline())
        assert found is not None
        request = request_of(path.stem, next(iter(load_entries("m", path).values())).inputs[0].name, shape)
        try:
            await asked(int(found[1]), request, 20 * clients, clients)
            begun = time.perf_counter()
            times = await asked(int(found[1]), request, count, clients)
            return len(times) / (time.perf_counter() - begun), np.array(times)
        finally:
            server.terminate()


def request_of(model: str, name: str, shape: list[int]) -> bytes:
    """Return the bytes of one request, its tensor in binary."""
    x = np.random.default_rng(0).random([1, *shape], "float32")
    said = {"name": name, "shape": [1, *shape], "datatype": "FP32", "parameters": {"binary_data_size": x.nbytes}}
    head = json.dumps({"inputs": [said], "parameters": {"binary_data_output": True}}).encode()
    lines = [f"POST /v2/models/{model}/infer HTTP/1.1", "host: localhost", f"content-length: {len(head) + x.nbytes}",
             f"inference-header-content-length: {len(head)}", "", ""]  # fmt: skip
    return "\r\n".join(lines).encode() + head + x.tobytes()


async def asked(port: int, request: bytes, count: int, clients: int) -> list[float]:
    """Send requests over so many connections; return how long each took."""
    left = iter(range(count))
    times: list[float] = []

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for _ in left:
            begun = time.perf_counter()
            writer.write(request)
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            if not head.startswith(b"http/1.1 200"):
                raise RuntimeError(head.decode())
            await reader.readexactly(int(re.findall(rb"\ncontent-length: (\d+)", head)[0]))
            times.append(time.perf_counter() - begun)
        writer.close()

    async with asyncio.timeout(300):
        await asyncio.gather(*(client() for _ in range(clients)))
    return times


if __name__ == "__main__":
    main()
