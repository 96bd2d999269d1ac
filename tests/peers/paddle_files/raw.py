"""Operations that no function of 2.6 writes any more, or that only its compiler does: put into a Program by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import paddle

from tests.peers.paddle_files.cases import spec, static_case

R = np.random.default_rng(2)


def f32(*shape: int) -> Any:
    return R.standard_normal(shape).astype("float32").round(2)


def append(op: str, inputs: dict[str, Any], attributes: dict[str, Any], *slots: str) -> Any:
    """Put an operation into the Program; return its first result."""
    from paddle.base.layer_helper import LayerHelper

    helper = LayerHelper(op)
    made = {slot: [helper.create_variable_for_type_inference("float32")] for slot in slots}
    helper.append_op(type=op, inputs={k: v if isinstance(v, list) else [v] for k, v in inputs.items()}, outputs=made,
                     attrs=attributes)  # fmt: skip
    return made[slots[0]][0]


@static_case([spec("x", [2, 3, 4]), spec("y", [2, 4, 3]), spec("w", [12, 5])], [f32(2, 3, 4), f32(2, 4, 3), f32(12, 5)])
def old_products(x, y, w):
    return [
        append("matmul", {"X": x, "Y": y}, {"alpha": 0.5}, "Out"),
        append("matmul", {"X": x, "Y": x}, {"transpose_Y": True}, "Out"),
        append("mul", {"X": x, "Y": w}, {"x_num_col_dims": 1, "y_num_col_dims": 1}, "Out"),
    ]


@static_case([spec("x", [1, 2, 4, 5])], [f32(1, 2, 4, 5)])
def old_shapes(x):
    return [
        append("flatten2", {"X": x}, {"axis": 2}, "Out", "XShape"),
        append("pad", {"X": x}, {"paddings": [0, 0, 1, 0, 0, 2, 1, 1], "pad_value": -1.0}, "Out"),
        append("norm", {"X": x}, {"axis": 1, "epsilon": 1e-6}, "Out", "Norm"),
        append("share_data", {"X": x}, {}, "Out"),
    ]


@static_case([spec("x", [2, 6]), spec("w", [2, 1])], [f32(2, 6), f32(2, 1)])
def old_arithmetic(x, w):
    return [
        append("elementwise_add", {"X": x, "Y": w}, {"axis": 0}, "Out"),
        append("elementwise_mul", {"X": x, "Y": paddle.reshape(w, [2])}, {"axis": 0}, "Out"),
        append("expand_as_v2", {"X": w, "Y": x}, {"target_shape": [2, 6]}, "Out"),
        append("reduce_sum", {"X": x}, {"dim": [1], "keep_dim": True}, "Out"),
        append("brelu", {"X": x}, {"t_min": -0.5, "t_max": 0.5}, "Out"),
    ]
