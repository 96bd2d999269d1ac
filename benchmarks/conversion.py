"""From a model's source of 200 lines to its Program: transform and trace, each beginning with nothing."""

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tagger_model
from harness import Goal, Job, Row

import dy2st as paddle
from dy2st.transformers import convert

WORDS = np.array([[3, 4, 5, 6, 0], [7, 8, 9, 0, 0]])
TAGS = np.array([[1, 2, 3, 4, 0], [2, 3, 1, 0, 0]])


def forget_conversions() -> None:
    """Let every function be parsed and transformed again."""
    module: Any = sys.modules[convert.__module__]
    module._converted.__init__()
    module._texts.clear()
    sys.modules["dy2st.pysrc.source"]._file.cache_clear()  # type: ignore[attr-defined]


def traced(cold: bool, with_tags: bool) -> Callable[[], Job]:
    """Trace the model for arguments of a kind that was not seen before."""

    def prepare() -> Job:
        words, tags = paddle.to_tensor(WORDS), paddle.to_tensor(TAGS)

        def job() -> float:
            net = paddle.jit.to_static(tagger_model.Tagger(), full_graph=True)
            if cold:
                forget_conversions()
            begin = time.perf_counter()
            spec = paddle.static.InputSpec([None, None], "int64")
            net.forward.concrete_program_specify_input_spec([spec, spec] if with_tags else [spec])
            return time.perf_counter() - begin

        assert tags.shape == words.shape
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
