"""Tokens put in the order of the experts that take them, and back again (mixture of experts)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dy2st import dtypes
from dy2st.functions.core.operands import cast_to, floating, tensor
from dy2st.functions.math.comparison import where
from dy2st.functions.math.reduction import any as any_of
from dy2st.functions.math.reduction import cumsum
from dy2st.functions.shape.creation import arange, full_like, zeros, zeros_like
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.gather_scatter import put_along_axis, take_along_axis
from dy2st.functions.shape.manipulation import reshape
from dy2st.runtime.eager.tensor import Tensor


def moe_permute(
    hidden_states: Any, scale: Any, expert_routemap_topk: Any, expert_prob_topk: Any, num_experts: int,
    tokens_per_expert: Sequence[int], padding_alignment: int, do_gather: bool = True, using_ue8m0_scale: bool = False,
    return_expert_indices: bool = False, override_buffer_size: int = -1, name: str | None = None,
) -> tuple[Any, ...]:  # fmt: skip
    """Return tokens [tokens, features] expert by expert, where they went, their probabilities and None (a scale).

    Parameters
    ----------
    expert_routemap_topk, expert_prob_topk
        The experts of each token [tokens, k], -1 for none, and how much each counts.
    tokens_per_expert, padding_alignment
        How many tokens each expert has; zeros fill its part up to a multiple.
    return_expert_indices
        Give the expert of each row of the result as well, -1 for a row that fills up.

    The second result is [tokens, num_experts]: the row of a token for an expert, -1 where it is not its.
    """
    x, route = tensor(hidden_states, "moe_permute"), cast_to(tensor(expert_routemap_topk, "moe_permute"), dtypes.int64)
    if scale is not None or using_ue8m0_scale:
        raise ValueError("moe_permute: there is no float8 here, so scale must be None")
    odds = floating(expert_prob_topk, "moe_permute")
    parts = [-(-int(n) // padding_alignment) * padding_alignment for n in tokens_per_expert]
    total = sum(parts) if override_buffer_size < 0 else override_buffer_size
    first = to_tensor([sum(parts[:e]) for e in range(num_experts)], "int64")
    chosen = route.unsqueeze(2) == arange(num_experts)
    takes = any_of(chosen, 1)
    rows = cumsum(cast_to(takes, dtypes.int64), 0) - 1 + first
    weights = (cast_to(chosen, odds.dtype) * odds.unsqueeze(2)).sum(1)
    where_to = where(takes, rows, full_like(rows, total))  # one row more takes what goes nowhere
    token = reshape(arange(x.shape[0]).unsqueeze(1) + zeros_like(rows), [-1])
    index = reshape(where_to, [-1])
    source = _written(zeros([total + 1], "int64") - 1, index, token)[:total]
    known = source >= 0
    at = where(known, source, zeros_like(source))
    gathered = where(known.unsqueeze(1), x[at], zeros_like(x[at]))
    made = _written(zeros([total + 1], odds.dtype), index, reshape(weights, [-1]))[:total]
    found = (gathered if do_gather else x, cast_to(where(takes, rows, full_like(rows, -1)), dtypes.int32),
             where(known, made, zeros_like(made)).unsqueeze(1), None)  # fmt: skip
    if not return_expert_indices:
        return found
    expert = reshape(arange(num_experts).unsqueeze(0) + zeros_like(rows), [-1])
    owners = _written(zeros([total + 1], "int64") - 1, index, expert)[:total]
    return *found, cast_to(where(known, owners, full_like(owners, -1)), dtypes.int32)


def moe_unpermute(
    hidden_states_unzipped: Any, zipped_expertwise_rowmap: Any, expert_routemap_topk: Any, token_prob_unzipped: Any,
    total_zipped_tokens: int, num_experts: int, using_mix_precision: bool = True, using_weighted_combine: bool = False,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Undo `moe_permute`: return the sum of each token's rows, and its probabilities [tokens, k].

    With `using_weighted_combine` rows count as much as their probabilities say.
    """
    x = tensor(hidden_states_unzipped, "moe_unpermute")
    rows, route = (
        cast_to(tensor(t, "moe_unpermute"), dtypes.int64) for t in (zipped_expertwise_rowmap, expert_routemap_topk)
    )
    odds = reshape(floating(token_prob_unzipped, "moe_unpermute"), [-1])
    known = rows >= 0
    at = where(known, rows, zeros_like(rows))
    weights = cast_to(known, dtypes.float32)
    weights = weights * cast_to(odds[at], dtypes.float32) if using_weighted_combine else weights
    out = cast_to((cast_to(x[at], dtypes.float32) * weights.unsqueeze(2)).sum(1), x.dtype)
    chosen = route >= 0
    row = take_along_axis(at, where(chosen, route, zeros_like(route)), 1)
    return out, where(chosen, odds[row], zeros_like(odds[row]))


def _written(into: Tensor, index: Tensor, values: Tensor) -> Tensor:
    return put_along_axis(into, index, values, 0)
