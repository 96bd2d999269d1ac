"""A process that finds its code on disk imports nothing that makes code."""

import subprocess
import sys

SCRIPT = """
import sys
import dy2st as paddle
from dy2st.runtime.backends.cpu.compile_link.compiler import library

@paddle.jit.to_static(full_graph=True)
def f(x, w):
    return paddle.nn.functional.softmax(x @ w)

x = paddle.to_tensor([[1.0, 0.5], [0.25, 2.0]])
print(f(x, x).shape, library.cache_info().currsize == 1, "llvmlite" in sys.modules)
for _ in range(3):
    f(x, x)
made = ["fast_calls.call_code", "fast_calls.method_code", "gemm", "glue.writer", "library", "lowering", "math", "rules"]
print([name for name in made if f"dy2st.runtime.backends.cpu.{name}" in sys.modules])
"""


def test_a_later_process_loads_nothing_that_makes_code(tmp_path, monkeypatch):
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    (tmp_path / "script.py").write_text(SCRIPT)
    found = [
        subprocess.run([sys.executable, tmp_path / "script.py"], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert found[0].splitlines()[0] == "[2, 2] True False"
    assert found[1].splitlines() == ["[2, 2] False False", "[]"]
