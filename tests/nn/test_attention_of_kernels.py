"""Attention under the names of fused kernels, beside a plain softmax, and tokens in the order of experts."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.nn import functional as F

RNG = np.random.default_rng(5)


def rand(*shape):
    return paddle.to_tensor(RNG.normal(size=shape).astype("float32"), stop_gradient=False)


def plain(q, k, v, seen=None, scale=None):
    """Attention of [batch, length, heads, features], one softmax."""
    q, k, v = (np.moveaxis(x.numpy().astype("float64"), 1, 2) for x in (q, k, v))
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ np.swapaxes(k, -1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights = weights if seen is None else weights * seen
    return np.moveaxis(weights / np.maximum(weights.sum(-1, keepdims=True), 1e-30) @ v, 1, 2)


def both(function, *arguments):
    eager, made = function(*arguments), paddle.jit.to_static(function, full_graph=True)(*arguments)
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (eager, made)), strict=True):
        if x is not None:
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-5, atol=1e-6)
    return eager


@pytest.mark.proves("nn.functional.flash_attn_qkvpacked")
def test_queries_keys_and_values_in_one_tensor():
    q, k, v = rand(2, 5, 4, 8), rand(2, 5, 2, 8), rand(2, 5, 2, 8)
    flash = F.flash_attention.flash_attention
    below = np.tril(np.ones((5, 5)))
    out, weights = both(lambda *a: flash(*a, causal=True, return_softmax=True), q, k, v)
    np.testing.assert_allclose(out.numpy(), plain(q, k, v, below), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(weights.sum(-1).numpy(), np.ones((2, 4, 5)), rtol=1e-5)
    packed = paddle.concat([q.reshape([2, 5, 2, 2, 8]), k.unsqueeze(2), v.unsqueeze(2)], 2)
    out, nothing = both(lambda x: F.flash_attn_qkvpacked(x), packed)
    np.testing.assert_allclose(out.numpy(), plain(q, k, v), rtol=1e-4, atol=1e-6)
    assert nothing is None
    out.sum().backward()
    assert q.grad is not None
    assert F.flash_attention.scaled_dot_product_attention is F.scaled_dot_product_attention
    assert F.flash_attention.flash_attn_unpadded is F.flash_attn_unpadded


@pytest.mark.proves("nn.functional.flash_attn_varlen_qkvpacked nn.functional.flash_attention_v3_varlen")
def test_sequences_one_after_another():
    q, k, v = (rand(9, 2, 4) for _ in range(3))
    bounds, owner = paddle.to_tensor([0, 2, 6, 9], "int32"), np.repeat([0, 1, 2], [2, 4, 3])
    same = owner[:, None] == owner
    one = [x.unsqueeze(0) for x in (q, k, v)]
    out = both(lambda *a: F.flash_attn_unpadded(*a, bounds, bounds, 4, 4, 0.5), q, k, v)[0]
    np.testing.assert_allclose(out.numpy(), plain(*one, same, 0.5)[0], rtol=1e-4, atol=1e-6)
    out = F.flash_attention_v3_varlen(q, k, v, bounds, bounds, 4, 4, causal=True)[0]
    np.testing.assert_allclose(out.numpy(), plain(*one, np.tril(same))[0], rtol=1e-4, atol=1e-6)
    packed = paddle.stack([q, k, v], 1)
    out = both(lambda x: F.flash_attn_varlen_qkvpacked(x, bounds, bounds, 4, 4, 0.5, varlen_padded=False), packed)[0]
    np.testing.assert_allclose(out.numpy(), plain(*one, same, 0.5)[0], rtol=1e-4, atol=1e-6)
    padded = paddle.stack([rand(12, 2, 4) for _ in range(3)], 1)
    out = both(lambda x: F.flash_attn_varlen_qkvpacked(x, bounds, bounds, 4, 4, 0.5), padded)[0].numpy()
    for i, length in enumerate([2, 4, 3]):
        part = [padded[4 * i : 4 * i + length, j].unsqueeze(0) for j in range(3)]
        np.testing.assert_allclose(out[4 * i : 4 * i + length], plain(*part, None, 0.5)[0], rtol=1e-4, atol=1e-6)
        assert not out[4 * i + length : 4 * i + 4].any()
    with pytest.raises(ValueError, match="softcap is not taken here"):
        F.flash_attention_v3_varlen(q, k, v, bounds, bounds, 4, 4, softcap=3.0)


@pytest.mark.proves("nn.functional.flashmask_attention")
@pytest.mark.parametrize(("causal", "count"), [(True, 1), (True, 2), (False, 2), (False, 4)])
def test_keys_say_which_queries_do_not_see_them(causal, count):
    q, k, v = rand(1, 6, 4, 8), rand(1, 6, 2, 8), rand(1, 6, 2, 8)
    bounds = np.sort(RNG.integers(0, 7, (1, 2, 6, count)), -1).astype("int32")
    bounds = bounds[..., [2, 3, 0, 1]] if count == 4 else bounds[..., ::-1] if not causal else bounds
    seen = np.tile(np.tril(np.ones((6, 6))) if causal else np.ones((6, 6)), (1, 4, 1, 1))
    for head in range(4):
        for j in range(6):
            low, *rest = bounds[0, head // 2, j]
            ends = count == (2 if causal else 4)
            seen[0, head, low : rest[0] if ends else None, j] = 0
            if not causal:
                seen[0, head, rest[1] if ends else 0 : rest[2] if ends else rest[0], j] = 0
    out = both(
        lambda q, k, v, b: F.flashmask_attention(q, k, v, b, causal=causal), q, k, v, paddle.to_tensor(bounds.copy())
    )
    np.testing.assert_allclose(out.numpy(), plain(q, k, v, seen), rtol=1e-4, atol=1e-6)


def test_windows_and_sums():
    q = rand(1, 6, 2, 4)
    far = np.arange(6)[:, None] - np.arange(6)
    out, sums = F.flashmask_attention(q, q, q, window_size=(2, 1), return_softmax_lse=True)
    np.testing.assert_allclose(out.numpy(), plain(q, q, q, (far <= 2) & (far >= -1)), rtol=1e-4, atol=1e-6)
    assert sums.shape == [1, 2, 6]
    with pytest.raises(ValueError, match="4 bounds of a key do not go with causal=True"):
        F.flashmask_attention(q, q, q, paddle.zeros([1, 1, 6, 4], "int32"), causal=True)
    with pytest.raises(ValueError, match="block_mask is not taken"):
        F.flashmask_attention(q, q, q, block_mask=q)


@pytest.mark.proves("nn.functional.sparse_attention")
def test_queries_that_see_a_few_keys():
    q, k, v = (rand(1, 1, 4, 2) for _ in range(3))
    offset, columns = [[[0, 2, 4, 6, 8]]], [[[0, 1, 0, 1, 2, 3, 2, 3]]]
    pair = paddle.to_tensor(offset, "int32"), paddle.to_tensor(columns, "int32")
    seen = np.kron(np.eye(2), np.ones((2, 2)))
    swapped = [paddle.transpose(x, [0, 2, 1, 3]) for x in (q, k, v)]
    out = both(F.sparse_attention, q, k, v, *pair)
    np.testing.assert_allclose(out.numpy()[0, 0], plain(*swapped, seen)[0, :, 0], rtol=1e-4, atol=1e-6)
    padding, mask = paddle.to_tensor([[1, 1, 1, 0]]), paddle.to_tensor(np.tril(np.ones((4, 4), "float32")))
    out = F.sparse_attention(q, k, v, *pair, padding, mask)
    wanted = plain(*swapped, np.tril(seen) * [1, 1, 1, 0])[0, :, 0]
    np.testing.assert_allclose(out.numpy()[0, 0], wanted, rtol=1e-4, atol=1e-6)


@pytest.mark.proves("nn.functional.moe_permute nn.functional.moe_unpermute")
def test_tokens_in_the_order_of_experts():
    x = rand(3, 4)
    route = paddle.to_tensor([[-1, 0, -1, 2], [1, -1, -1, -1], [-1, -1, 1, -1]], "int32")
    odds = paddle.to_tensor([[0.0, 0.6, 0.0, 0.4], [1.0, 0, 0, 0], [0, 0, 1.0, 0]])
    run = lambda *a: F.moe_permute(*a, 3, [1, 2, 1], 2, return_expert_indices=True)
    rows, places, weights, scale, owners = run(x, None, route, odds)
    assert places.tolist() == [[0, -1, 4], [-1, 2, -1], [-1, 3, -1]]
    assert owners.tolist() == [0, -1, 1, 1, 2, -1]
    np.testing.assert_allclose(weights[:, 0].numpy(), [0.6, 0, 1, 1, 0.4, 0])
    np.testing.assert_array_equal(rows.numpy(), x.numpy()[[0, 0, 1, 2, 0, 0]] * [[1], [0], [1], [1], [1], [0]])
    assert scale is None
    both(lambda x, route, odds: F.moe_permute(x, None, route, odds, 3, [1, 2, 1], 2)[:3], x, route, odds)
    out, back = both(lambda *a: F.moe_unpermute(*a, 3, 3, using_weighted_combine=True), rows, places, route, weights)
    np.testing.assert_allclose(out.numpy(), x.numpy(), rtol=1e-6)
    np.testing.assert_allclose(back.numpy(), odds.numpy())
    out, _ = F.moe_unpermute(rows, places, route, weights, 3, 3)
    np.testing.assert_allclose(out.numpy(), x.numpy() * [[2], [1], [1]], rtol=1e-6)
    with pytest.raises(ValueError, match="there is no float8 here"):
        F.moe_permute(x, x, route, odds, 3, [1, 2, 1], 2)
