"""State dicts of torch in Layers: the same outputs as torch's, and one error that names all that does not fit.

What torch saved and gave is in `tests/data/torch/` (`tests/peers/torch_states.py`).
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st.interop import load_torch_state
from tests.peers.torch_models import LARGE, drawn, numbers

DATA = Path(__file__).parents[1] / "data" / "torch"
OUTPUTS = np.load(DATA / "outputs.npz")
SHAPES = json.loads((DATA / "large.json").read_text())
nn = paddle.nn


def norms() -> Any:
    first = (nn.Conv2D(3, 4, 3), nn.GroupNorm(2, 4), nn.Conv2DTranspose(4, 4, 2), nn.InstanceNorm2D(4))
    return nn.Sequential(*first, nn.PReLU(4), nn.BatchNorm2D(4), nn.LayerNorm(6))


SMALL: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "lstm": (lambda: nn.LSTM(3, 4, 2, "bidirect"), [(2, 5, 3)]),
    "lstm_projected": (lambda: nn.LSTM(3, 5, 2, "bidirect", proj_size=2), [(2, 5, 3)]),
    "gru": (lambda: nn.GRU(3, 4, 2), [(2, 5, 3)]),
    "rnn": (lambda: nn.SimpleRNN(3, 4, bias_ih_attr=False, bias_hh_attr=False), [(2, 5, 3)]),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(8, 2, 16), [(2, 5, 8)]),
    "encoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2, nn.LayerNorm(8)),
        [(2, 5, 8)],
    ),
    "decoder_layer": (lambda: nn.TransformerDecoderLayer(8, 2, 16), [(2, 5, 8), (2, 3, 8)]),
    "attention": (lambda: nn.MultiHeadAttention(8, 2, kdim=6, vdim=4), [(2, 5, 8), (2, 3, 6), (2, 3, 4)]),
    "norms": (norms, [(2, 3, 7, 7)]),
    "bilinear": (lambda: nn.Bilinear(3, 4, 2), [(5, 3), (5, 4)]),
}


def check(layer: Any, name: str, shapes: list[tuple[int, ...]]) -> None:
    """Compare what a layer gives, eagerly and as a Program, with torch's output."""
    layer.eval()
    inputs = [paddle.to_tensor(drawn(*shape)) for shape in shapes]
    for run in (layer, paddle.jit.to_static(layer, full_graph=True)):
        made = run(*inputs)
        made = made[0] if isinstance(made, tuple) else made
        np.testing.assert_allclose(made.numpy(), OUTPUTS[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SMALL)
def test_small_modules_give_what_torch_gives(name: str) -> None:
    make, shapes = SMALL[name]
    layer = make()
    found = load_torch_state(layer, paddle.load(DATA / f"{name}.pt"))
    assert (found.missing, found.left_over) == ([], [])
    check(layer, name, shapes)


@pytest.mark.parametrize("name", LARGE)
def test_large_modules_give_what_torch_gives(name: str) -> None:
    layer = {"lenet": paddle.vision.models.LeNet, "resnet18": paddle.vision.models.resnet18}[name]()
    state = {f"module.{key}": numbers(key, tuple(shape)) for key, shape in SHAPES[name].items()}
    found = load_torch_state(layer, state, rename={"module": ""})
    assert len(found.taken) == len(layer.state_dict())
    check(layer, name, [LARGE[name][1]])


def test_safetensors_and_half_precision(tmp_path: Path) -> None:
    linear = nn.Linear(3, 2)
    state = {"weight": np.arange(6, dtype="float16").reshape(2, 3), "bias": np.ones(2, "float16")}
    paddle.save(state, str(tmp_path / "w.safetensors"))
    load_torch_state(linear, paddle.load(str(tmp_path / "w.safetensors")))
    assert linear.weight.dtype == paddle.float32
    assert linear.weight.tolist() == [[0, 3], [1, 4], [2, 5]]
    load_torch_state(linear, {"weight": paddle.ones([2, 3], "bfloat16"), "bias": paddle.zeros([2], "bfloat16")})
    assert linear.weight.tolist() == [[1, 1]] * 3


def test_attention_whose_parts_are_layers_of_their_own() -> None:
    """As models have them that call `scaled_dot_product_attention`."""
    layer = nn.MultiHeadAttention(4, 2)
    parts = ("q_proj", "k_proj", "v_proj", "out_proj")
    state = {f"{part}.weight": np.full((4, 4), i, "float32") for i, part in enumerate(parts)}
    state |= {f"{part}.bias": np.zeros(4, "float32") for part in parts}
    load_torch_state(layer, state)
    assert layer.v_proj.weight[0, 0].item() == 2


def test_parameters_of_the_user_and_shared_ones() -> None:
    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(5, 3)
            self.scale = self.create_parameter([3])
            self.register_buffer("steps", paddle.zeros([1], "int64"))
            self.register_buffer("cached", paddle.zeros([1]), persistable=False)
            self.again = self.embedding

    net = Net()
    state = {"embedding.weight": np.ones((5, 3)), "scale": np.full(3, 2.0), "steps": np.array([7])}
    found = load_torch_state(net, state)
    assert sorted(found.taken) == ["embedding.weight", "scale", "steps"]
    assert (net.scale.tolist(), net.steps.tolist(), net.again.weight[0, 0].item()) == ([2, 2, 2], [7], 1)


# ---- what does not fit ---------------------------------------------------------------------------------------------
def test_one_error_names_every_mismatch_and_changes_nothing() -> None:
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1D(2), nn.MultiHeadAttention(2, 1))
    before = {name: t.numpy() for name, t in net.state_dict().items()}
    state = {
        "0.weight": np.ones((2, 4)), "0.bias": np.ones(2, "int64"), "1.weight": np.ones(2), "1.bias": np.ones(3),
        "1.running_var": np.ones(2), "1.num_batches_tracked": np.array(3), "2.in_proj_weight": np.ones((7, 2)),
        "head.weight": np.ones(1),
    }  # fmt: skip
    with pytest.raises(ValueError, match="the state does not fit the Sequential:") as caught:
        load_torch_state(net, state)
    assert str(caught.value).splitlines() == [
        "the state does not fit the Sequential:",
        "  0.weight has the shape [3, 2]: 0.weight has [2, 4], here [4, 2]",
        "  0.bias has the dtype float32: 0.bias has int64",
        "  1.bias has the shape [2]: 1.bias has [3]",
        *(
            f"  2.{part}_proj.weight comes from 2.in_proj_weight: its shape [7, 2] is not that of three parts"
            for part in "qkv"
        ),
        "  missing in the state: 1._mean (in torch 1.running_mean)",
        *(f"  missing in the state: 2.{part}_proj.bias" for part in "qkv"),
        "  missing in the state: 2.out_proj.weight",
        "  missing in the state: 2.out_proj.bias",
        "  left over in the state: head.weight",
    ]
    for name, t in net.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), before[name])


def test_a_part_of_a_state_is_loaded_when_it_is_asked_for() -> None:
    linear = nn.Linear(3, 2)
    found = load_torch_state(linear, {"weight": np.ones((2, 3)), "x": np.ones(1)}, strict=False)
    assert str(found) == "1 tensors were taken\nmissing in the state: bias\nleft over in the state: x"
    with pytest.raises(ValueError, match="weight has the shape"):
        load_torch_state(linear, {"weight": np.ones((2, 2))}, strict=False)


def test_a_long_error_is_cut() -> None:
    with pytest.raises(ValueError, match=r"left over in the state: 37\n  and 62 more$"):
        load_torch_state(nn.Linear(1, 1), {str(i): np.ones(1) for i in range(100)})


def test_names_are_changed_first() -> None:
    linear = nn.Linear(2, 2, bias_attr=False)
    ones = np.ones((2, 2))
    net = nn.Sequential(("net", linear))
    load_torch_state(net, {"weight": ones}, rename={"": "net"})
    load_torch_state(net, {"a.b.weight": ones * 2, "a.c": ones}, rename={"a.b": "net", "a": None})
    assert linear.weight[0, 0].item() == 2
    load_torch_state(net, {"WEIGHT": ones * 3}, rename=lambda name: f"net.{name.lower()}")
    assert linear.weight[0, 0].item() == 3
    with pytest.raises(ValueError, match=r"rename makes 'net.weight' of two names: 'a.weight' and 'b.weight'"):
        load_torch_state(net, {"a.weight": ones, "b.weight": ones}, rename={"a": "net", "b": "net"})
    with pytest.raises(TypeError, match="rename made 3 of 'weight': a name or None is expected"):
        load_torch_state(net, {"weight": ones}, rename=lambda name: 3)  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="rename is a function or a dict of leading parts of names, not int"):
        load_torch_state(net, {"weight": ones}, rename=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"model": {}}, r"the state has a dict under 'model': give that one, state\['model'\]"),
        ({"epoch": 3}, "the state has a int under 'epoch', which is no tensor"),
        ([1], "a state dict maps names to tensors, it is not list"),
    ],
)
def test_what_is_no_state(state: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        load_torch_state(nn.Linear(1, 1), state)
    with pytest.raises(TypeError, match="a state is loaded into a Layer, not into int"):
        load_torch_state(3, state)  # type: ignore[arg-type]
