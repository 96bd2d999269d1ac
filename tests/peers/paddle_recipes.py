"""Run a recipe of `examples/` under PaddlePaddle: the same file with `import paddle`, not `import dy2st`.

/tmp/peer/bin/pip install paddlepaddle "numpy<2.3" scikit-learn scipy rich
/tmp/peer/bin/python tests/peers/paddle_recipes.py grammar_lstm --out /tmp/grammar_lstm
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"


def as_paddle(source: str) -> str:
    r"""Return the source of an example as PaddlePaddle's users write it.

    >>> print(as_paddle("import dy2st as paddle\nimport dy2st.nn.functional as F\nfrom dy2st import nn"))
    import paddle
    import paddle.nn.functional as F
    from paddle import nn
    """
    source = re.sub(r"^import dy2st as paddle$", "import paddle", source, flags=re.MULTILINE)
    return re.sub(r"^(import|from) dy2st\b", r"\1 paddle", source, flags=re.MULTILINE)


def main() -> int:
    """Run the recipe that the command line names, with the rest of its arguments; return its exit status."""
    name, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="paddle-recipes-") as folder:
        for path in EXAMPLES.glob("*.py"):
            (Path(folder) / path.name).write_text(as_paddle(path.read_text()))
        here = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        return subprocess.run([sys.executable, str(Path(folder) / f"{name}.py"), *rest], env=here).returncode


if __name__ == "__main__":
    sys.exit(main())
