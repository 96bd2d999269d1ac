"""From a model's source of 200 lines to its Program: transform and trace, each beginning with nothing.

Measured in CPU time of the thread, so that what else runs on the machine counts less.
"""

import os
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import tagger_model
from harness import Goal, Job, Row

import dy2st as paddle
from dy2st.transformers import convert


def forget_conversions() -> None:
    """Let every function be parsed and transformed again, and none be kept on disk."""
    os.environ["DY2ST_CACHE_DIR"] = ""
    module: Any = sys.modules[convert.__module__]
    module._converted.__init__()
    sys.modules["dy2st.transformers.conversion"]._texts.clear()  # type: ignore[attr-defined]
    sys.modules["dy2st.pysrc.source"]._file.cache_clear()  # type: ignore[attr-defined]


def traced(cold: bool, with_tags: bool) -> Callable[[], Job]:
    """Trace the model for arguments of a kind that was not seen before."""

    def prepare() -> Job:
        def job() -> float:
            net = paddle.jit.to_static(tagger_model.Tagger(), full_graph=True)
            if cold:
                forget_conversions()
            begin = time.thread_time()
            spec = paddle.static.InputSpec([None, None], "int64")
            net.forward.concrete_program_specify_input_spec([spec, spec] if with_tags else [spec])
            return time.thread_time() - begin

        return job

    return prepare


def whole(median: Mapping[str, float]) -> float:
    return median["dy2st, transform and trace"]


def row(name: str, with_tags: bool) -> Row:
    return Row(
        f"a Program of {name}",
        {
            "dy2st, transform and trace": traced(True, with_tags),
            "dy2st, trace alone": traced(False, with_tags),
        },
        Goal("transform and trace", whole, 0.15),
        reports_seconds=True,
    )


ROWS = (row("200 lines, training", True), row("200 lines, greedy decoding", False))
