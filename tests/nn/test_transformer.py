"""Attention against its formula; transformers eager, in a Program, and step by step with a cache."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.nn import functional as F


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, mask):
    """q, k, v are [batch, heads, length, features]."""
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + mask) @ v


def test_attention_scales_and_shares_heads(rng):
    q, k = rng.normal(size=(1, 3, 4, 2)), rng.normal(size=(1, 5, 2, 2))
    out = F.scaled_dot_product_attention(*map(paddle.to_tensor, (q, k, k)), scale=0.3).numpy()
    for head in range(4):
        scores = np.exp(0.3 * q[0, :, head] @ k[0, :, head // 2].T)
        want = scores / scores.sum(-1, keepdims=True) @ k[0, :, head // 2]
        np.testing.assert_allclose(out[0, :, head], want, rtol=1e-10)
    with pytest.raises(ValueError, match="4 heads of the query do not go with 2 of keys"):
        F.scaled_dot_product_attention(*map(paddle.to_tensor, (q, k, k)), enable_gqa=False)


@pytest.mark.parametrize("kind", ["none", "bool", "float", "int", "causal", "causal and bool"])
def test_scaled_dot_product_attention(kind, rng):
    q, k, v = (rng.normal(size=(2, 5, 3, 4)) for _ in range(3))
    seen = rng.uniform(size=(2, 1, 5, 5)) > 0.3
    seen[..., 0] = True
    added, given = np.zeros((1, 1, 5, 5)), None
    if "bool" in kind:
        given, added = paddle.to_tensor(seen), np.where(seen, 0, -1e9)
    elif kind == "int":
        given, added = paddle.to_tensor(seen.astype("int64")), np.where(seen, 0, -1e9)
    elif kind == "float":
        added = rng.normal(size=(5, 5))
        given = paddle.to_tensor(added)
    if "causal" in kind:
        added = added + np.where(np.tril(np.ones((5, 5))), 0, -1e9)
    out = F.scaled_dot_product_attention(
        *(paddle.to_tensor(x) for x in (q, k, v)), given, is_causal="causal" in kind
    ).numpy()
    want = attention(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)), added).transpose(0, 2, 1, 3)
    np.testing.assert_allclose(out, want, rtol=1e-6, atol=1e-9)


@pytest.mark.proves("nn.MultiHeadAttention")
def test_multi_head_attention_is_its_formula(rng):
    layer = nn.MultiHeadAttention(8, 2, kdim=3, vdim=5, need_weights=True)
    q, k, v = (rng.normal(size=(2, n, d)).astype("float32") for n, d in ((4, 8), (6, 3), (6, 5)))

    def heads(x, proj):
        return (x @ proj.weight.numpy() + proj.bias.numpy()).reshape(2, -1, 2, 4).transpose(0, 2, 1, 3)

    out, weights = layer(*(paddle.to_tensor(x) for x in (q, k, v)))
    found = attention(heads(q, layer.q_proj), heads(k, layer.k_proj), heads(v, layer.v_proj), 0.0)
    want = found.transpose(0, 2, 1, 3).reshape(2, 4, 8) @ layer.out_proj.weight.numpy() + layer.out_proj.bias.numpy()
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(weights.numpy().sum(-1), np.ones((2, 2, 4)), rtol=1e-5)


@pytest.mark.parametrize("before", [False, True], ids=["post-norm", "pre-norm"])
def test_values_and_gradients_are_the_same_in_a_program(before, rng):
    model = nn.Transformer(8, 2, 1, 1, 16, dropout=0.2, activation="gelu", normalize_before=before)
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    src, tgt = (paddle.to_tensor(rng.normal(size=(3, n, 8)).astype("float32")) for n in (5, 4))
    found = []
    for _ in range(2):
        paddle.seed(3)
        out = model(src, tgt, None, mask)
        out.square().sum().backward()
        found.append([out.numpy(), *(p.grad.numpy() for p in model.parameters())])
        model.clear_gradients()
        paddle.jit.to_static(model, full_graph=True)
    for a, b in zip(*found):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_one_program_serves_every_length():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
    x = {n: paddle.randn([2, n, 8]) for n in (3, 1, 7)}
    want = {n: encoder(x[n]).numpy() for n in x}
    paddle.jit.to_static(encoder, full_graph=True)
    for n in x:
        np.testing.assert_allclose(encoder(x[n]).numpy(), want[n], rtol=1e-4, atol=1e-5)
    assert len(encoder.forward.program_cache) == 1


def test_a_decoder_with_a_cache_gives_the_same_step_by_step():
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2, nn.LayerNorm(8))
    decoder.eval()
    tgt, memory = paddle.randn([3, 4, 8]), paddle.randn([3, 5, 8])
    whole = decoder(tgt, memory, nn.Transformer.generate_square_subsequent_mask(4)).numpy()
    cache, outs = decoder.gen_cache(memory), []
    for t in range(4):
        out, cache = decoder(tgt[:, t : t + 1], memory, cache=cache)
        outs.append(out.numpy())
    np.testing.assert_allclose(np.concatenate(outs, 1), whole, rtol=1e-4, atol=1e-5)
    growing, fixed = decoder.gen_cache(memory, do_zip=True)
    assert growing[0].k.shape == [3, 2, 0, 4]
    assert fixed[0].k.shape == [3, 2, 5, 4]


def test_an_encoder_with_a_cache_sees_what_came_before():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2)
    src = paddle.randn([1, 3, 8])
    whole = encoder(src, nn.Transformer.generate_square_subsequent_mask(3)).numpy()
    cache = encoder.gen_cache(src)
    first, cache = encoder(src[:, :1], cache=cache)
    second, cache = encoder(src[:, 1:2], cache=cache)
    np.testing.assert_allclose(np.concatenate([first.numpy(), second.numpy()], 1), whole[:, :2], rtol=1e-4, atol=1e-5)


def test_a_cache_of_given_tensors():
    layer = nn.MultiHeadAttention(8, 2)
    k, v = paddle.zeros([1, 2, 3, 4]), paddle.ones([1, 2, 3, 4])
    out, cache = layer(paddle.ones([1, 2, 8]), cache=layer.gen_cache(k, v))
    assert (out.shape, cache.k.shape) == ([1, 2, 8], [1, 2, 5, 4])


def test_layers_of_a_stack_have_parameters_of_their_own():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3)
    assert len({id(p) for p in encoder.parameters()}) == 3 * 16
    assert next(name for name, _ in encoder.named_parameters()) == "layers.0.self_attn.q_proj.weight"


def test_attributes_for_each_part():
    no_bias = nn.TransformerDecoderLayer(8, 2, 16, bias_attr=[False, None, False])
    assert no_bias.self_attn.q_proj.bias is None
    assert no_bias.cross_attn.q_proj.bias is not None
    assert no_bias.linear1.bias is None
    assert nn.TransformerDecoderLayer(8, 2, 16, bias_attr=(False, None)).cross_attn.q_proj.bias is None


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda: nn.MultiHeadAttention(8, 3), "embed_dim 8 does not divide into 3 heads"),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, activation="jump"), "no activation is named 'jump'"),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16, weight_attr=[None] * 4), "weight_attr has 4 attributes"),
        (lambda: F.scaled_dot_product_attention(*[paddle.ones([2, 3, 4])] * 3), "the query must be"),
    ],
)
def test_bad_arguments(act, text):
    with pytest.raises(ValueError, match=text):
        act()
