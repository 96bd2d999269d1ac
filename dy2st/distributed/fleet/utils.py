"""Helpers for training: `recompute`, and gradients of several processes."""

from typing import Any

from dy2st.autograd.recompute import recompute
from dy2st.distributed.collective import ReduceOp, all_reduce
from dy2st.missing import missing_in

__path__: list[str] = []  # modules of paths.py are below
__getattr__ = missing_in(__name__)

__all__ = ["fused_allreduce_gradients", "recompute"]


def fused_allreduce_gradients(parameter_list: Any, hcg: Any = None) -> None:
    """Average the gradients over all processes."""
    for p in parameter_list:
        if p.grad is not None:
            all_reduce(p.grad, ReduceOp.AVG)
