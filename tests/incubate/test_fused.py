"""Steps that one kernel does elsewhere, beside what they are made of, and figures of PaddlePaddle 3.3.1 for some."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import incubate
from dy2st.incubate.nn import functional as N
from dy2st.nn import functional as F


def ramp(*shape, by=7):
    numbers = (np.arange(int(np.prod(shape))) * by % 11 - 5).astype("float32") / 4
    return paddle.to_tensor(numbers.reshape(shape), stop_gradient=False)


def both(function, *arguments):
    eager, made = function(*arguments), paddle.jit.to_static(function, full_graph=True)(*arguments)
    for x, y in zip(*(r if isinstance(r, tuple) else (r,) for r in (eager, made)), strict=True):
        if x is not None:
            np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=2e-5, atol=1e-6)
    return eager


def near(tensor, wanted, tolerance=2e-4):
    np.testing.assert_allclose(tensor.numpy(), wanted, rtol=tolerance, atol=tolerance)


X, W, B = ramp(2, 3, 4), ramp(4, 4, by=3), ramp(4)


def test_softmax_with_masks():
    made = both(incubate.softmax_mask_fuse, ramp(1, 2, 3, 3), ramp(1, 1, 3, 3, by=5))
    near(made[0, 0], [[0.0213, 0.4285, 0.5502], [0.4185, 0.5374, 0.0441], [0.8421, 0.0691, 0.0888]])
    x = ramp(1, 1, 3, 3)
    made = both(incubate.softmax_mask_fuse_upper_triangle, x)
    near(made, F.softmax(x + paddle.triu(paddle.full([3, 3], -1e9), 1)).numpy())
    near(incubate.identity_loss(X, "mean"), -0.03125)
    near(incubate.identity_loss(X, 0), X.sum().numpy())
    with pytest.raises(ValueError, match="reduction is"):
        incubate.identity_loss(X, "max")


def test_graphs_under_their_old_names():
    assert incubate.segment_max(ramp(4, 2), paddle.to_tensor([0, 0, 1, 1])).tolist() == [[-0.5, 1.25], [1.0, 0.0]]
    made = incubate.graph_send_recv(ramp(3, 2), paddle.to_tensor([0, 1, 2]), paddle.to_tensor([1, 2, 1]), "mean")
    assert made.tolist() == [[0.0, 0.0], [-0.5, -0.125], [-0.5, 1.25]]


def test_linear_maps_and_activations():
    near(both(N.fused_linear, X, W, B), F.linear(X, W, B).numpy())
    near(N.fused_linear(X, W, B, True), F.linear(X, W.t(), B).numpy())
    near(N.fused_linear_activation(X, W, B, activation="gelu"), F.gelu(F.linear(X, W, B)).numpy())
    near(both(lambda x, b: N.fused_bias_act(x, b), X, B), F.gelu(X + B).numpy())
    near(N.fused_bias_act(X, act_method="swiglu"), N.swiglu(X).numpy())
    near(N.swiglu(X)[0, 0], [0.1392, 0.3890])
    near(N.fused_dropout_add(X, X, 0.3, False, "downscale_in_infer")[0, 0], [-2.125, 0.85, -0.85, 2.125])
    with pytest.raises(ValueError, match="a fused activation is"):
        N.fused_linear_activation(X, W, B, activation="exp")
    with pytest.raises(ValueError, match="no quantized products"):
        N.fused_bias_act(X, B, X)


def test_norms():
    near(N.fused_layer_norm(X, B, B, 1e-5, begin_norm_axis=2)[0, 0], [0.3913, 0.7626, -0.2374, 2.8913])
    made, total = both(lambda x, b: N.fused_layer_norm(x, b, b, 1e-5, 1.0, 2, b, x), X, B)
    near(made[0, 1], [-0.1457, -0.0522, -1.0522, 2.3543])
    near(total[0, 0], [-3.75, 1.5, -1.5, 3.75])
    near(both(lambda x, b: N.fused_rms_norm(x, b, None, 1e-5, 2), X, B)[0][0, 0], [1.6413, 0.2626, 0.2626, 1.6413])
    made = N.fused_bias_dropout_residual_layer_norm(X, X * 2, B, B, B, 0.0)
    near(made, F.layer_norm(X * 3 + B, [4], B, B).numpy())
    with pytest.raises(ValueError, match="no quantized numbers"):
        N.fused_rms_norm(X, B, None, 1e-5, 2, quant_scale=1.0)


@pytest.mark.parametrize("before", [True, False])
def test_layers_of_transformers(before):
    paddle.seed(1)
    fused = incubate.nn.FusedTransformerEncoderLayer(4, 2, 8, 0.0, normalize_before=before)
    plain = paddle.nn.TransformerEncoderLayer(4, 2, 8, 0.0, normalize_before=before)
    for p in fused.parameters():
        p.set_value(paddle.randn(p.shape))
    attention, feed = fused.fused_attn, fused.ffn
    for part, weight, bias in zip((plain.self_attn.q_proj, plain.self_attn.k_proj, plain.self_attn.v_proj),
                                  attention.qkv_weight, attention.qkv_bias, strict=True):  # fmt: skip
        part.weight.set_value(weight.reshape([4, 4]).t())
        part.bias.set_value(bias.flatten())
    norms = (attention.pre_ln_scale, attention.pre_ln_bias) if before else (attention.ln_scale, attention.ln_bias)
    second = (feed._ln1_scale, feed._ln1_bias) if before else (feed._ln2_scale, feed._ln2_bias)
    for layer, weight, bias in (
        (plain.self_attn.out_proj, attention.linear_weight, attention.linear_bias), (plain.norm1, *norms),
        (plain.linear1, feed._linear1_weight, feed._linear1_bias), (plain.norm2, *second),
        (plain.linear2, feed._linear2_weight, feed._linear2_bias),
    ):  # fmt: skip
        layer.weight.set_value(weight)
        layer.bias.set_value(bias)
    mask = paddle.triu(paddle.full([3, 3], -1e9), 1)
    near(both(lambda x: fused(x, mask), X), plain(X, mask).numpy(), 1e-4)
    made, cache = attention(X[:, 2:], cache=paddle.stack([ramp(2, 2, 2, 2), ramp(2, 2, 2, 2)]))
    assert (made.shape, cache.shape) == ([2, 1, 4], [2, 2, 2, 3, 2])


def test_further_layers():
    layer = incubate.nn.FusedLinear(4, 3, transpose_weight=True)
    near(layer(X), F.linear(X, layer.weight.t(), layer.bias).numpy())
    layer = incubate.nn.FusedBiasDropoutResidualLayerNorm(4, 0.0)
    near(layer(X, X), F.layer_norm(X * 2, [4]).numpy())
    layer = incubate.nn.FusedDropoutAdd(0.5)
    layer.eval()
    near(layer(X, X), (X * 2).numpy())
    packed = incubate.nn.FusedMultiHeadAttention(4, 2, 0.0, 0.0, transpose_qkv_wb=True)
    assert packed(X).shape == [2, 3, 4]
    assert incubate.nn.Linear is paddle.nn.Linear
    with pytest.raises(ValueError, match="need_weights must be False"):
        incubate.nn.FusedMultiHeadAttention(4, 2, need_weights=True)


def test_angles_that_grow_with_places():
    q = ramp(1, 3, 2, 4)
    for neighbours in (True, False):
        q2, k2, v2 = both(lambda q, n=neighbours: N.fused_rotary_position_embedding(q, q, use_neox_rotary_style=n), q)
        near(q2, k2.numpy())
        assert v2 is None
        near((q2 * q2).sum(-1), (q * q).sum(-1).numpy())
        near(q2[:, 0], q[:, 0].numpy())
    first, second = q.numpy()[0, 1, 0, :2]
    turned = N.fused_rotary_position_embedding(q)[0].numpy()[0, 1, 0, :2]
    near(paddle.to_tensor(turned), [first * np.cos(1) - second * np.sin(1), second * np.cos(1) + first * np.sin(1)])
    sin, cos = ramp(1, 5, 1, 4), ramp(1, 5, 1, 4, by=5)
    made = N.fused_rotary_position_embedding(q, None, None, sin, cos, paddle.to_tensor([[4, 0, 2]]))[0]
    again = N.fused_rotary_position_embedding(q, None, None, sin[:, [4, 0, 2]], cos[:, [4, 0, 2]])[0]
    near(made, again.numpy())
    swapped = N.fused_rotary_position_embedding(
        q.transpose([1, 0, 2, 3]), sin=sin[:, :3], cos=cos[:, :3], time_major=True
    )
    near(
        swapped[0].transpose([1, 0, 2, 3]),
        N.fused_rotary_position_embedding(q, sin=sin[:, :3], cos=cos[:, :3])[0].numpy(),
    )


def test_attention():
    q = ramp(2, 3, 2, 4)
    mea = incubate.nn.memory_efficient_attention
    near(mea.memory_efficient_attention(q, q, q), F.scaled_dot_product_attention(q, q, q).numpy())
    causal = F.scaled_dot_product_attention(q, q, q, is_causal=True)
    near(mea.memory_efficient_attention(q, q, q, mea.LowerTriangularMask()), causal.numpy())
    near(N.fused_dot_product_attention(q, q, q, is_causal=True), causal.numpy())
    lengths = paddle.to_tensor([[2], [3]])
    heads = q.transpose([0, 2, 1, 3])
    made = both(lambda x: N.variable_length_memory_efficient_attention(x, x, x, lengths, lengths), heads)
    near(made[0, :, :2], F.scaled_dot_product_attention(*[q[:1, :2]] * 3)[0].transpose([1, 0, 2]).numpy())
    assert not made.numpy()[0, :, 2].any()


def test_inference_runs_without_gradients():
    double = incubate.jit.inference(lambda x: x * 2 if x.sum() > 0 else x)
    assert double(paddle.ones([2])).tolist() == [2, 2]
    assert double(X + 1).stop_gradient
    assert (incubate.jit.is_inference_mode(double), incubate.jit.is_inference_mode(len)) == (True, False)
    layer = incubate.jit.inference()(paddle.nn.Linear(4, 2))
    assert layer(X).stop_gradient


def weight():
    made = paddle.create_parameter([2], "float32")
    made.set_value(np.array([1.0, 2.0], "float32"))
    return made


def test_slow_weights():
    p = weight()
    slow = incubate.LookAhead(paddle.optimizer.SGD(0.1, parameters=[p]), alpha=0.2, k=3)
    seen = []
    for _ in range(6):
        slow.minimize((p * p).sum())
        slow.clear_grad()
        seen.append(round(p[0].item(), 5))
    assert seen == [0.8, 0.64, 0.7424, 0.59392, 0.47514, 0.66994]
    with pytest.raises(ValueError, match="alpha lies between"):
        incubate.optimizer.LookAhead(slow, 2.0)


def test_means_of_weights():
    p, seen = weight(), []
    optimizer = paddle.optimizer.SGD(0.1, parameters=[p])
    mean = incubate.ModelAverage(0.5, [p], 2, 4)
    for _ in range(7):
        (p * p).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        mean.minimize(p)
        with mean.apply():
            seen.append(round(p[0].item(), 5))
    assert seen == [0.8, 0.72, 0.65067, 0.4608, 0.41643, 0.37786, 0.26651]
    assert round(p[0].item(), 5) == 0.20972
    with mean.apply(need_restore=False):
        pass
    assert round(p[0].item(), 5) == 0.26651
    mean.restore()
    assert round(p[0].item(), 5) == 0.20972
    with pytest.raises(AttributeError, match="needs its parameters"):
        incubate.ModelAverage(0.5)
