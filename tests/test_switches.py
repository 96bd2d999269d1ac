"""Names that change nothing here, streams, typed tensors, readers, what is refused with a sentence."""

import numpy as np
import pytest

import dy2st as paddle


@pytest.mark.proves(
    "BoolTensor ByteTensor CharTensor DoubleTensor FloatTensor HalfTensor IntTensor LongTensor ShortTensor"
)
@pytest.mark.proves("Size BFloat16Tensor")
def test_tensors_by_dtype():
    for name, dtype in (("Bool", "bool"), ("Byte", "uint8"), ("Char", "int8"), ("Short", "int16"), ("Int", "int32"),
                        ("Long", "int64"), ("Half", "float16"), ("Float", "float32"),
                        ("Double", "float64"), ("BFloat16", "bfloat16")):  # fmt: skip
        kind = getattr(paddle, f"{name}Tensor")
        made = kind([1, 0, 1])
        assert (made.dtype.name, made.tolist()) == (dtype, [1, 0, 1])
        assert kind(made.astype("float32")).dtype.name == dtype
        assert (kind(2, 3).shape, kind().shape, kind(paddle.Size([4])).shape) == ([2, 3], [0], [4])
    size = paddle.Size([2, 3])
    assert (size.numel(), repr(size)) == (6, "paddle.Size([2, 3])")
    assert size == (2, 3) == size == [2, 3]
    assert size != 5


@pytest.mark.proves("Tensor.set_ Tensor.resize_ Tensor.layout Tensor.offset Tensor.type Tensor.grad_fn Tensor.grad_")
def test_shapes_in_place_and_attributes():
    x = paddle.zeros([3])
    assert x.set_(paddle.arange(6.0), [2, 2], [1, 2], 4) is x
    assert x.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert paddle.zeros([3]).set_(paddle.arange(6.0), [2, 3]).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert paddle.zeros([3]).set_().shape == [0]
    y = paddle.to_tensor([1.0, 2.0, 3.0])
    assert y.resize_([2, 2], fill_zero=True).tolist() == [[1, 2], [3, 0]]
    assert y.resize_([2]).tolist() == [1, 2]
    with pytest.raises(ValueError, match="give fill_zero"):
        y.resize_([3])
    assert (y.layout, y.offset, y.type) == ("NCHW", 0, "dense_tensor")
    y.stop_gradient = False
    assert y.grad_fn is None
    assert (y * 2).grad_fn is not None
    (y * 2).sum().backward()
    assert y.grad_.tolist() == [2, 2]


@pytest.mark.proves("LazyGuard disable_signal_handler enable_compat disable_compat check_shape")
def test_switches():
    with paddle.LazyGuard():
        layer = paddle.nn.Linear(2, 3)
    for p in layer.parameters():
        p.initialize()
    assert layer(paddle.ones([1, 2])).shape == [1, 3]
    assert paddle.disable_signal_handler() is paddle.disable_compat() is None
    with pytest.raises(NotImplementedError, match="enable_compat: modules of torch"):
        paddle.enable_compat()
    with pytest.raises(NotImplementedError, match="enable_compat"), paddle.use_compat_guard():
        pass
    paddle.check_shape([1, paddle.to_tensor(2)], "f")
    paddle.check_shape(paddle.to_tensor([2]))
    for bad, why in (("a", "is a list"), ([1.5], "has a float in it"), (paddle.ones([1]), "tensor of float32")):
        with pytest.raises(TypeError, match=why):
            paddle.check_shape(bad, "f")
    made = paddle.framework.EagerParamBase.from_tensor(paddle.ones([2]), trainable=False)
    assert (made.tolist(), made.stop_gradient) == ([1, 1], True)
    assert paddle.__git_commit__ == paddle.version.commit == "unknown"


def test_streams():
    stream, event = paddle.device.Stream(), paddle.device.cuda.Event(enable_timing=True)
    with paddle.device.stream_guard(stream):
        assert paddle.device.current_stream() is stream
    assert paddle.device.cuda.current_stream() is not stream
    with pytest.raises(RuntimeError, match="two events that were recorded"):
        event.elapsed_time(event)
    event.record()
    after = stream.record_event()
    stream.wait_event(after)
    stream.wait_stream(stream)
    stream.synchronize()
    assert event.elapsed_time(after) >= 0
    assert event.query() is stream.query() is True
    assert paddle.Stream is paddle.device.Stream
    assert paddle.device.get_all_custom_device_type() == []
    assert paddle.device.cuda.is_available() == (paddle.device.cuda.device_count() > 0)
    paddle.cuda.empty_cache()
    state = paddle.device.cuda.get_rng_state()
    first = paddle.rand([2]).tolist()
    paddle.device.cuda.set_rng_state(state)
    assert paddle.rand([2]).tolist() == first


def test_readers():
    from dy2st import reader

    count = lambda: range(5)
    assert list(reader.buffered(count, 3)()) == list(reader.cache(count)()) == list(range(5))
    assert list(reader.chain(count, count)()) == [*range(5), *range(5)]
    assert list(reader.firstn(count, 2)()) == [0, 1]
    assert sorted(reader.shuffle(count, 2)()) == list(range(5))
    assert list(reader.xmap_readers(lambda x: x + 1, count, 2, 4)()) == [1, 2, 3, 4, 5]
    assert list(reader.multiprocess_reader([count, lambda: "ab"])()) == [0, "a", 1, "b", 2, 3, 4]
    assert list(reader.compose(count, lambda: "ab", check_alignment=False)()) == [(0, "a"), (1, "b")]
    with pytest.raises(reader.ComposeNotAligned, match="different numbers"):
        list(paddle.reader.decorator.compose(count, lambda: "ab")())


def test_operators_in_c_are_refused_with_a_sentence():
    extension = paddle.utils.cpp_extension
    for name in ("setup", "load", "CppExtension", "CUDAExtension", "BuildExtension"):
        with pytest.raises(NotImplementedError, match=f"{name}: operators written against Paddle's C\\+\\+ headers"):
            getattr(extension, name)(name="x")
    with pytest.raises(NotImplementedError, match="with_options"):
        extension.BuildExtension.with_options(use_ninja=False)
    assert extension.get_build_directory() == ""


def test_values_written_by_initializers():
    init, w = paddle.nn.init, paddle.nn.Linear(40, 60).weight
    assert init.constant_(w, 2.0) is w
    assert set(w.flatten().tolist()) == {2.0}
    assert init.zeros_(w).sum().item() == 0
    assert init.ones_(w).sum().item() == 2400
    assert init.eye_(w).sum().item() == 40
    for fill, low, high in ((init.uniform_, 0, 1), (init.normal_, -9, 9), (init.trunc_normal_, -2, 2),
                            (init.xavier_uniform_, -0.25, 0.25), (init.xavier_normal_, -1, 1),
                            (init.kaiming_normal_, -2, 2), (init.kaiming_uniform_, -0.39, 0.39)):  # fmt: skip
        fill(w)
        assert low <= w.min().item() < w.max().item() <= high
        assert len(np.unique(w.numpy())) > 1000
    np.testing.assert_allclose((init.orthogonal_(w) @ w.T).numpy(), np.eye(40), atol=1e-5)
    assert init.dirac_(paddle.nn.Conv1D(2, 2, 3).weight)[:, :, 1].tolist() == [[1, 0], [0, 1]]
    assert init.calculate_gain("relu") == pytest.approx(2**0.5)
    with pytest.raises(ValueError, match="eye_ needs a matrix"):
        init.eye_(paddle.zeros([2]))


def test_batch_norms_for_several_processes():
    net = paddle.nn.Sequential(paddle.nn.Conv2D(1, 2, 3), paddle.nn.Sequential(paddle.nn.BatchNorm2D(2)))
    before, x = net[1][0].weight, paddle.randn([2, 1, 5, 5])
    wanted = net(x).numpy()
    made = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert type(made[1][0]) is paddle.nn.SyncBatchNorm
    assert made[1][0].weight is before
    np.testing.assert_allclose(made(x).numpy(), wanted)


def test_paths_of_functions():
    F = paddle.nn.functional
    assert F.loss.cross_entropy is F.cross_entropy
    assert F.conv.conv2d is F.conv2d
    assert paddle.inference.Config.Precision.Half == paddle.inference.PrecisionType.Half
    assert paddle._legacy_C_ops.relu(paddle.to_tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]
    with pytest.raises(AttributeError, match="has no attribute 'cross_entropi'"):
        _ = F.loss.cross_entropi


def test_mixed_precision_of_hand_built_programs():
    amp = paddle.static.amp
    lists = amp.CustomOpLists(["conv2d"], ["softmax"], ["x"])
    assert (lists.white_list, lists.black_list, lists.black_varnames) == ({"conv2d"}, {"softmax"}, {"x"})
    with pytest.raises(ValueError, match="in the white list and in the black list: exp"):
        amp.AutoMixedPrecisionLists(["exp"], ["exp"])
    paddle.enable_static()
    try:
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, start), amp.fp16_guard():
            x = paddle.static.data("x", [2, 3])
            loss = paddle.static.nn.fc(x, 1).mean()
            optimizer = amp.decorate(paddle.optimizer.SGD(0.1), lists)
            optimizer.minimize(loss)
        executor = paddle.static.Executor()
        executor.run(start)
        optimizer.amp_init(paddle.CPUPlace())
        feed = {"x": np.ones((2, 3), "float32")}
        first, second = (executor.run(main, feed=feed, fetch_list=[loss])[0] for _ in range(2))
        assert second < first
        assert optimizer.get_loss_scaling() == 1.0
        assert amp.cast_model_to_fp16(main) == set()
        amp.cast_parameters_to_fp16(None, main)
    finally:
        paddle.disable_static()
