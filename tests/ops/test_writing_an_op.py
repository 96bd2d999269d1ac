"""docs/writing-an-op.md, followed step by step with an op that the package lacks: `mish2` is fused natively."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CHECKS = """
import numpy as np

x = paddle.to_tensor(np.linspace(-30, 30, 4001), stop_gradient=False)  # float64
for _ in range(4):
    y = scaled(x)
    (gradient,) = paddle.grad(y.sum(), x)
given = x.numpy()
curve, logistic = np.tanh(np.logaddexp(0, given)), 1 / (1 + np.exp(-given))
np.testing.assert_allclose(y.numpy(), 2 * given * curve + 1, rtol=1e-13, atol=1e-14)
slope = curve + given * logistic * (1 - curve**2)
np.testing.assert_allclose(gradient.numpy(), 2 * slope, rtol=1e-12, atol=1e-14)
print(scaled.explain())
"""


def chapter(title: str) -> str:
    """Return the Python of a chapter and of those before it."""
    page = (ROOT / "docs" / "writing-an-op.md").read_text(encoding="utf-8")
    start = page.index(f"\n## {title}\n")
    end = page.find("\n## ", start + 1)
    return "\n\n".join(re.findall(r"^```python\n(.*?)^```", page[:end], re.DOTALL | re.MULTILINE))


def test_an_op_that_is_written_as_the_page_says_is_fused(tmp_path: Path) -> None:
    source = chapter("7. Native code")
    assert "mish2" in source
    example = tmp_path / "mish2.py"  # to_static reads the source of what it converts
    example.write_text(source + _CHECKS)
    library = {**os.environ, "PYTHONPATH": str(ROOT), "DY2ST_BACKEND": "native"}
    done = subprocess.run([sys.executable, str(example)], env=library, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"loops over \[x_0\]: mish2 broadcast mul broadcast add ->", done.stdout)
    *_, told = done.stdout.partition("scaled:")
    assert told.count("native code") == 3  # for float32, for float64, and the gradient of that
    assert "Python for" not in told
