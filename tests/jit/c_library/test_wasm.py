"""Programs as WebAssembly: under strict mode the same bits as in Python, for all that a library may have."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dy2st as paddle
from dy2st import nn
from dy2st.cli import main
from dy2st.jit.c_library.signature import NoFormInC
from dy2st.static import InputSpec
from tests.jit.c_library import test_constructs_in_c as constructs
from tests.jit.c_library import test_state_in_c as states
from tests.jit.c_library.in_node import array, built, calls, in_node, needs_node, needs_zig, told

pytestmark = [needs_zig, needs_node]
FILES = {"index.html", "model.d.mts", "model.d.ts", "model.mjs", "model.wasm"}
USE = """
import { load, ModelError } from "./model.mjs";
const model = await load("model.wasm", { seed: 3 });
const x = { data: new Float32Array(3), shape: [1, 3] };
const { output_0, output_1 } = model.forward({ x, y: { data: [1, 2, 3], shape: [1, 3] }, flag: true });
const [sum, flag]: [Float32Array, boolean] = [output_0.data, output_1];
try { model.another().free(); } catch (error) { if (error instanceof ModelError) console.log(error.code, sum, flag); }
// @ts-expect-error: an input is missing
model.forward({ x, flag: true });
// @ts-expect-error: data of another type
model.forward({ x: { data: new Float64Array(3), shape: [1, 3] }, y: x, flag: true });
"""
RNG = np.random.default_rng(3)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(dtype)


def check(function: Any, spec: list[InputSpec], folder: Path, **inputs: Any) -> None:
    """Compare two calls with native code of this machine, bit by bit."""
    run = paddle.jit.to_static(function, strict=True)
    made = run(*(paddle.to_tensor(x) for x in inputs.values()))
    wanted = [
        np.asarray(getattr(t, "numpy", lambda t=t: t)()) for t in (made if isinstance(made, (list, tuple)) else [made])
    ]
    for results in calls(built(function, spec, folder), inputs, inputs):
        assert len(results) == len(wanted)
        for got, want in zip(results, wanted, strict=True):
            assert got.shape == want.shape
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    ("function", "spec", "inputs"),
    [
        (constructs.collatz, [InputSpec([], "int64", name="n")], {"n": np.int64(27)}),
        (constructs.until_small, [InputSpec([None], name="x")], {"x": normal(9) * 4}),
        (constructs.running_sums, [InputSpec([None, 3], name="x")], {"x": normal(20, 3)}),
        (
            constructs.half, [InputSpec([None, 4], "float16", name="x"), InputSpec([4, 4], "float16", name="y")],
            {"x": normal(5, 4, dtype="float16"), "y": normal(4, 4, dtype="float16")},
        ),
        (
            constructs.integers, [InputSpec([None], "int32", name="x"), InputSpec([None], "int64", name="i")],
            {"x": np.arange(9, dtype=np.int32), "i": np.array([3, 0, 8])},
        ),
        (constructs.softmaxed, [InputSpec([None, None], name="x")], {"x": normal(7, 130)}),
        (
            constructs.broadcast, [InputSpec([None, None], name="x"), InputSpec([None], name="y")],
            {"x": normal(7, 13), "y": normal(1)},
        ),
    ],
)  # fmt: skip
def test_wasm_gives_the_bits_of_python(function: Any, spec: list[InputSpec], inputs: Any, tmp_path: Path) -> None:
    check(function, spec, tmp_path, **inputs)


def libm(x, y):
    return (
        paddle.exp(x), paddle.log(y), paddle.sin(1e6 * x), paddle.tanh(x), paddle.erf(x), y**x, paddle.sqrt(y),
        paddle.atan2(x, y), paddle.floor(x), paddle.round(x), paddle.minimum(x, y), paddle.maximum(x, y), x % y, x // y,
        x.astype("int64"),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_math_functions(dtype: str, tmp_path: Path) -> None:
    x, y = normal(50, dtype=dtype) * 3, np.abs(normal(50, dtype=dtype)) + np.asarray(0.1, dtype)
    check(libm, [InputSpec([None], dtype, name="x"), InputSpec([None], dtype, name="y")], tmp_path, x=x, y=y)


def test_lenet(tmp_path: Path) -> None:
    paddle.seed(2)
    net = paddle.vision.models.LeNet()
    net.eval()
    check(net, [InputSpec([None, 1, 28, 28], name="inputs")], tmp_path, inputs=normal(3, 1, 28, 28))


def test_a_layer_of_recurrent_cells(tmp_path: Path) -> None:
    paddle.seed(2)
    lstm = nn.LSTM(6, 10)

    def last(x):
        y, (h, _) = lstm(x)
        return y, h

    check(last, [InputSpec([None, None, 6], name="x")], tmp_path, x=normal(2, 9, 6))


class Decoder(nn.Layer):
    """Writes tokens until it writes the last one."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(12, 16), nn.GRUCell(16, 16), nn.Linear(16, 12)

    def forward(self, token, most):
        state = paddle.zeros([1, 16])
        written = []
        while len(written) < most and token[0] != 11:
            y, state = self.cell(self.embedding(token), state)
            token = paddle.argmax(self.out(y), axis=-1)
            written.append(token)
        return paddle.concat(written), len(written)


def test_a_decoder_with_a_loop(tmp_path: Path) -> None:
    paddle.seed(4)
    spec = [InputSpec([1], "int64", name="token"), InputSpec([], "int64", name="most")]
    check(Decoder(), spec, tmp_path, token=np.array([3]), most=np.int64(20))


def test_random_numbers_are_those_of_the_seed(tmp_path: Path) -> None:
    built(constructs.noise, [InputSpec([None], name="x")], tmp_path)
    run = paddle.jit.to_static(constructs.noise, strict=True)
    paddle.seed(11)
    x = normal(6)
    for results in calls(tmp_path, {"x": x}, {"x": x}, {"x": x}, options="{ seed: 11 }"):
        for got, want in zip(results, run(paddle.to_tensor(x)), strict=True):
            np.testing.assert_array_equal(got, want.numpy())


def countdown(n):
    if n <= 0:
        return n * 1
    return countdown(n - 1) + 1


def test_functions_that_call_themselves(tmp_path: Path) -> None:
    folder = built(paddle.jit.to_static(countdown), [InputSpec([], "int64", name="n")], tmp_path)
    deep, small = calls(folder, {"n": np.int64(100_000)}, {"n": np.int64(900)})
    assert deep["code"] == "FAILED"
    assert small == [900]


def test_a_stack_that_ends_ends_the_module(tmp_path: Path) -> None:
    folder = built(paddle.jit.to_static(countdown), [InputSpec([], "int64", name="n")], tmp_path)
    script = """
    const model = await load();
    let seen = null;
    const dive = () => {
      try { dive(); } catch {
        try { if (!seen) model.forward({ n: 900 }); } catch (error) { if (error instanceof ModelError) seen = error; }
        throw 0;
      }
    };
    try { dive(); } catch {}
    print(seen.message);
    print(got(() => model.forward({ n: 1 })));
    """
    first, later = in_node(folder, script)
    assert first == "forward: too many calls inside of each other"
    assert later["error"] == "the module ended (too many calls inside of each other): load it again"


# ---- state ---------------------------------------------------------------------------------------------------------
@pytest.mark.filterwarnings("ignore:a loaded layer will not change")
def test_a_train_step_trains_in_an_instance(tmp_path: Path) -> None:
    folder = built(states.train_step(), states.SPEC, tmp_path)
    run = paddle.jit.to_static(states.train_step(), strict=True)
    data = states.batches(8)
    wanted = [float(run(*map(paddle.to_tensor, batch))) for batch in data]
    script = """
    const batches = told.map(given);
    const model = await load();
    const losses = (m, some) => some.map((batch) => m.forward(batch).output);
    print(losses(model, batches.slice(0, 4)));
    const weights = model.save();
    print(losses(model.another(), batches.slice(0, 4)));
    print(losses(model, batches.slice(4)));
    print(losses(model.another({ weights }), batches.slice(4)));
    print(losses(await load(undefined, { weights }), batches.slice(4)));
    model.free();
    print(got(() => model.forward(batches[0])));
    weights[20] ^= 1;
    try { await load(undefined, { weights }); } catch (error) { print([error.code, error.message]); }
    """
    *losses, freed, foreign = in_node(folder, script, [told(x=x, y=y) for x, y in data])
    assert losses == [wanted[:4], wanted[:4], wanted[4:], wanted[4:], wanted[4:]]
    assert freed == {"error": "this model was freed", "code": "INVALID"}
    assert foreign == ["BAD_FILE", "these are no weights of model"]


def test_functions_share_what_they_write(tmp_path: Path) -> None:
    folder = built(states.Counter(), None, tmp_path)
    x = np.arange(21, dtype=np.float32).reshape(3, 7)
    script = """
    const model = await load();
    for (const step of [0, 1]) print(got(() => model.forward(given(told))));
    print(got(() => model.count({ more: 5 })));
    """
    first, second, count = in_node(folder, script, told(x=x))
    assert [array(first["output"]), array(second["output"]), array(count["output"])] == [x.sum(), 2 * x.sum(), 7]


def test_weights_may_be_a_file_apart(tmp_path: Path) -> None:
    linear = nn.Linear(4, 2)
    folder = built(linear, [InputSpec([None, 4], name="x")], tmp_path, weights=False)
    script = """
    import { readFile } from "node:fs/promises";
    try { await load(); } catch (error) { print(`${error.code}: ${error.message}`); }
    const model = await load(undefined, { weights: await readFile("model.safetensors") });
    print(got(() => model.forward(given(told))));
    """
    x = normal(3, 4)
    refused, result = in_node(folder, script, told(x=x))
    assert refused.startswith("BAD_FILE: the weights of model are not built in")
    np.testing.assert_allclose(array(result["output"]), linear(paddle.to_tensor(x)).numpy(), rtol=1e-6)


# ---- errors --------------------------------------------------------------------------------------------------------
def test_errors_of_the_model_have_the_line(tmp_path: Path) -> None:
    folder = built(constructs.wrong_sign, [InputSpec([None], name="x")], tmp_path)
    good = np.array([3, 4], np.float32)
    low, high, fine = calls(folder, {"x": -good}, {"x": 1000 * good}, {"x": good})
    assert low["code"] == high["code"] == "FAILED"
    assert low["error"].startswith("ValueError: the sum is to be positive (")
    assert "test_constructs_in_c.py:" in low["error"]
    assert high["error"].startswith("AssertionError: too large (")
    np.testing.assert_array_equal(fine[0], good)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("{}", "input 'x' is missing"),
        ("{ x: zeros, y: zeros, z: 1 }", "forward has no input 'z': its inputs are x, y, flag"),
        (
            "{ x: { data: new Float64Array(6), shape: [2, 3] } }",
            "input 'x': data of float32 is a Float32Array, not a Float64Array",
        ),
        (
            "{ x: { data: new Float32Array(5), shape: [2, 3] } }",
            "input 'x': a shape of [2,3] has 6 elements, and data has 5",
        ),
        ("{ x: [1, 2, 3] }", "input 'x': 2 axes are wanted ([any, 3]), not 0"),
        ("{ x: { data: [1, 2, 'x'], shape: [1, 3] } }", "input 'x': x is no number (as float32)"),
        ("{ x: { data: [], shape: [-1, 3] } }", "input 'x': no shape is [-1,3]"),
        ("{ x: { data: [1, 2], shape: [1, 2] }, y: zeros, flag: true }", "input 'x': extent 2 of axis 1 is to be 3"),
        ("{ x: {}, y: zeros, flag: true }", "input 'x': a tensor is {data, shape}"),
    ],
)  # fmt: skip
def test_inputs_are_looked_at(adder: Path, call: str, error: str) -> None:
    script = f"""
    const model = await load();
    const zeros = {{ data: new Float32Array(6), shape: [2, 3] }};
    print(got(() => model.forward({call})));
    print(got(() => model.forward({{ x: zeros, y: {{ data: [1, 2, 3, 4, 5, 6], shape: [2, 3] }}, flag: true }})));
    """
    refused, fine = in_node(adder, script)
    assert refused == {"error": error, "code": "INVALID"}
    assert array(fine["output_0"]).tolist() == [[1, 2, 3], [4, 5, 6]]
    assert fine["output_1"] == {"plain": "true", "kind": "boolean"}


def added(x, y, flag):
    return x + y, flag


@pytest.fixture(scope="module")
def adder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    spec = [InputSpec([None, 3], name="x"), InputSpec([None, 3], name="y"), InputSpec([], "bool", name="flag")]
    return built(added, spec, tmp_path_factory.mktemp("adder"))


def test_memory_has_a_limit(tmp_path: Path) -> None:
    folder = built(lambda x: paddle.matmul(x, x) + 1.0, [InputSpec([None, None], name="x")], tmp_path)
    small, large = normal(20, 20), normal(400, 400)
    first, over, again = calls(folder, {"x": small}, {"x": large}, {"x": small}, options="{ mostBytes: 100_000 }")
    assert over["code"] == "NO_MEMORY"
    np.testing.assert_array_equal(first, again)
    assert len(calls(folder, {"x": large})[0]) == 1


def huge(n):
    return paddle.ones([n, n])


def test_memory_that_no_module_can_have_is_an_error(tmp_path: Path) -> None:
    folder = built(huge, [InputSpec([], "int64", name="n")], tmp_path)
    over, far, fine = calls(folder, {"n": np.int64(40_000)}, {"n": np.int64(1 << 20)}, {"n": np.int64(10)})
    assert over["code"] == far["code"] == "NO_MEMORY"
    assert fine[0].sum() == 100


# ---- the module ----------------------------------------------------------------------------------------------------
def test_a_module_imports_nothing(adder: Path) -> None:
    script = """
    import { readFile } from "node:fs/promises";
    const bytes = await readFile("model.wasm");
    const module = await WebAssembly.compile(bytes);
    print(WebAssembly.Module.imports(module));
    for (const source of [bytes, module, new Response(bytes), "./model.wasm"]) {
      const model = await load(typeof source === "string" ? new URL(source, import.meta.url) : source);
      print(model.functions.map((told) => told.name));
    }
    """
    assert in_node(adder, script) == [[], *[["forward"]] * 4]
    assert {file.name for file in adder.iterdir()} - {"script.mjs", "told.json"} == FILES


@pytest.mark.skipif(shutil.which("tsc") is None, reason="tsc, TypeScript's compiler, is not installed")
def test_typescript_takes_the_types(adder: Path) -> None:
    (adder / "use.mts").write_text(USE)
    flags = "--noEmit --strict --target es2022 --lib es2022,dom --module nodenext"
    ran = subprocess.run(["tsc", *flags.split(), "use.mts"], cwd=adder, capture_output=True, text=True, check=False)
    (adder / "use.mts").unlink()
    assert not ran.returncode, ran.stdout


def test_types_are_written_for_typescript(adder: Path) -> None:
    text = (adder / "model.d.ts").read_text()
    assert "  x: Tensor<Float32Array | number[]>;\n" in text
    assert "  flag: boolean;\n" in text
    assert "  output_0: Tensor<Float32Array>;\n" in text
    assert "forward(inputs: ForwardInputs): ForwardOutputs;" in text


def test_the_command_writes_a_module(tmp_path: Path) -> None:
    linear = nn.Linear(4, 2)
    paddle.jit.save(linear, str(tmp_path / "lin"), [InputSpec([None, 4], name="x")])
    made = ["-o", str(tmp_path / "made"), "--name", "model"]
    assert main(["build", str(tmp_path / "lin"), "--target", "wasm32", *made]) == 0
    x = normal(3, 4)
    ((result,),) = calls(tmp_path / "made", {"x": x})
    np.testing.assert_allclose(result, linear(paddle.to_tensor(x)).numpy(), rtol=1e-6)


class Kept(nn.Layer):
    """A method that is called as one is that every model has."""

    @paddle.jit.to_static(input_spec=[InputSpec([None], name="x")])
    def forward(self, x):
        return x * 2

    @paddle.jit.to_static(input_spec=[InputSpec([None], name="x")])
    def save(self, x):
        return x + 1


def test_a_method_does_not_hide_what_models_have(tmp_path: Path) -> None:
    folder = built(Kept(), None, tmp_path)
    assert calls(folder, {"x": np.ones(1, np.float32)}, function="save_")[0][0].tolist() == [2]


def test_complex_numbers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NoFormInC, match=r"input 'x' is complex64.*: JavaScript has no array of complex64"):
        built(lambda x: x, [InputSpec([None], "complex64", name="x")], tmp_path)
