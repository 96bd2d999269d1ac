"""Models of strangers: each fault is one FileFormatError, soon, and without memory that the file only speaks of."""

import json
import struct
import time

import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.paddle_files import wire
from tests.paddle_files.models import RELEASES, unpacked


def field(number, content):
    """A field of a message: a varint, or bytes."""
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(n):
    made = b""
    while n > 127:
        made, n = made + bytes([n & 127 | 128]), n >> 7
    return made + bytes([n])


def operation(kind, inputs=(), outputs=(), attributes=b""):
    slots = [
        b"".join(field(place, field(1, s) + field(2, n)) for s, n in some)
        for place, some in ((1, inputs), (2, outputs))
    ]
    return field(4, b"".join(slots) + field(3, kind) + attributes)


def number(name, kind, place, value):
    return field(4, field(1, name) + field(2, kind) + field(place, value))


def variable(name, dims=(2,), kind=7, dtype=5, persistable=0):
    tensor = field(1, dtype) + b"".join(field(2, d) for d in dims)
    return field(3, field(1, name) + field(2, field(1, kind) + field(3, field(1, tensor))) + field(3, persistable))


def relu(between=b"", variables=b"", blocks=b"", kind="relu"):
    """A `.pdmodel` of one operation, with more before it."""
    block = variable("x") + variables + operation("feed", outputs=[("Out", "x")], attributes=number("col", 0, 3, 0))
    block += between + operation(kind, [("X", "x")], [("Out", "y")])
    return field(1, block + operation("fetch", [("X", "y")], attributes=number("col", 0, 3, 0))) + blocks


def refused(path, match):
    start = time.perf_counter()
    with pytest.raises(FileFormatError, match=match) as caught:
        paddle.jit.load(str(path))
    assert time.perf_counter() - start < 20
    assert path.parent.name in str(caught.value)


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "m.pdmodel"
    (tmp_path / "m.pdiparams").write_bytes(b"")
    return path


def test_a_model_by_hand_runs(model):
    model.write_bytes(relu())
    assert paddle.jit.load(str(model))(paddle.to_tensor([-1.0, 2.0])).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("name", ["lenet", "turns"])
def test_a_model_that_is_cut_short_is_refused(release, name, tmp_path):
    unpacked(release, name, tmp_path)
    file = tmp_path / (name + RELEASES[release])
    whole = file.read_bytes()
    for share in (0.0, 0.2, 0.5, 0.9, 0.999):
        file.write_bytes(whole[: int(share * len(whole))])
        refused(file, r".")


@pytest.mark.parametrize("release", RELEASES)
def test_weights_that_are_cut_short_longer_or_others_are_refused(release, tmp_path):
    path, _ = unpacked(release, "lenet", tmp_path)
    file, model = tmp_path / "lenet.pdiparams", tmp_path / ("lenet" + RELEASES[release])
    whole = file.read_bytes()
    for data, match in (
        (b"", "cut short at the weight"),
        (whole[:500], "cut short at the weight"),
        (whole + b"1234", "4 bytes more than the weights"),
        (struct.pack("<IQ", 0, 1 << 60) + whole[12:], "levels of detail"),
        (struct.pack("<IQQ", 0, 1, 1 << 62) + whole[12:], "cut short at the weight"),
        (struct.pack("<I", 7) + whole[4:], "has a version that is not 0"),
        (whole[:16] + struct.pack("<i", -1) + whole[20:], "a head of -1 bytes"),
        (whole[:16] + struct.pack("<i", 1 << 30) + whole[20:], "a head of 1073741824 bytes"),
    ):
        file.write_bytes(data)
        refused(model, match)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"no \.pdiparams file beside it"):
        paddle.jit.load(path)


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"\xff" * 100, "more than 64 bits"),
        (b"\x0a\xff\xff\xff\xff\x0f", "longer than what it stands in"),
        (b"\x0b\x0c", "the wire type 3"),
        (field(1, field(4, field(3, b"\xff\xfe"))), "is no text"),
        (field(1, 5), "has the wire type 0"),
        (field(1, b""), "it has no output"),
        (relu(kind="evil"), "there is no rule for evil"),
        (relu(operation("evil") + operation("worse")), "there is no rule for evil, worse"),
        (relu(operation("relu", [("X", "z")], [("Out", "w")])), "'z' is nowhere"),
        (relu(operation("relu", [], [("Out", "w")])), "relu: "),
        (relu(operation("while", attributes=number("sub_block", 8, 12, 0))), "the block 0, which is none, or another"),
        (relu(operation("while", attributes=number("sub_block", 8, 12, 9))), "the block 9, which is none, or another"),
        (relu(variables=variable("w", (1 << 20, 1 << 20), persistable=1)), "1,099,511,627,776 elements"),
        (relu(variables=variable("w", (1 << 50,) * 2, persistable=1)), "elements"),
        (relu(variables=variable("w", (2,) * 40, persistable=1)), "has the shape"),
        (relu(variables=variable("w", dtype=99, persistable=1)), "no tensor of a known dtype"),
        (relu(variables=variable("w", persistable=1)), "cut short at the weight 'w'"),
        (relu(operation("feed", outputs=[("Out", "z")], attributes=number("col", 0, 3, 0))), "one name and one place"),
        (relu(operation("transpose2", [("X", "x")], [("Out", "z")], number("axis", 3, 6, 7))), "transpose2: "),
        (relu(operation("cast", [("X", "x")], [("Out", "z")], number("out_dtype", 0, 3, 77))), "of the dtype 77"),
    ],
)  # fmt: skip
def test_a_wrong_program_desc_is_refused(data, match, model):
    model.write_bytes(data)
    refused(model, match)


def test_blocks_in_a_circle_or_too_deep_are_refused(model):
    inner = [
        field(1, field(1, n) + operation("while", attributes=number("sub_block", 8, 12, n % 100 + 1)))
        for n in range(1, 101)
    ]
    model.write_bytes(relu(operation("while", attributes=number("sub_block", 8, 12, 1)), blocks=b"".join(inner)))
    refused(model, "more than 64 deep in each other")
    twice = operation("while", attributes=number("sub_block", 8, 12, 1)) * 2
    model.write_bytes(relu(twice, blocks=field(1, b"")))
    refused(model, "another operation's")


def test_a_constant_of_many_elements_is_not_made(model):
    lots = field(4, field(1, "shape") + field(2, 11) + field(15, 1 << 20) + field(15, 1 << 20))
    model.write_bytes(relu(operation("fill_constant", [], [("Out", "z")], lots + number("dtype", 0, 3, 5))))
    refused(model, "more than is made of one number")


def test_more_fields_than_are_read_are_refused(monkeypatch):
    monkeypatch.setattr(wire, "MOST_FIELDS", 1000)
    with pytest.raises(FileFormatError, match="more than 1,000 fields"):
        wire.parse(b"\x08\x01" * 2000, {1: ("x", "int")})
    with pytest.raises(FileFormatError, match="more than 1,000 fields"):
        wire.parse(field(1, b"\x01" * 2000), {1: ("x", "int*")})


def changed(program, change):
    change(program["program"]["regions"][0]["blocks"][0])
    return json.dumps(program)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda b: b["ops"][-2].update({"#": "1.evil"}), "there is no rule for pd_op.evil"),
        (lambda b: b["ops"][-2].update({"#": 5}), "an operation with the name 5"),
        (lambda b: b["ops"][-2]["I"].__setitem__(0, {"%": 99999}), "reads the value 99999, which nothing before it"),
        (lambda b: b["ops"][-2]["I"].__setitem__(0, {"%": b["ops"][-1]["O"][0]["%"]}), "nothing before it defines"),
        (lambda b: b["ops"][-2]["O"].__setitem__(0, {"%": 1}), "the number 1, which is none or another one's"),
        (lambda b: b["ops"][-2]["O"].__setitem__(0, {"%": [1]}), r"the number \[1\], which is none"),
        (lambda b: b["ops"][-2].update(I=5), "a list is expected, not 5"),
        (lambda b: b["ops"].append(5), "an object is expected, not 5"),
        (lambda b: b["ops"][0]["O"]["TT"]["D"].__setitem__(1, [1 << 40, 1 << 40]), "elements"),
        (lambda b: b["ops"][0]["O"]["TT"]["D"].__setitem__(1, [1.5]), "has the shape"),
        (lambda b: b["ops"][0]["O"]["TT"]["D"].__setitem__(1, [3]), "in the model"),
        (lambda b: b["ops"][0].update(A=[0, 1, 1, 7]), "a parameter that says"),
        (lambda b: b["ops"][-2].update(regions=[{"blocks": []}]), "a region of 0 blocks"),
        (lambda b: b["ops"].pop(), "it has no output"),
        (lambda b: b["ops"].append(b["ops"][-1]), "another one's"),
    ],
)  # fmt: skip
def test_a_wrong_program_of_pir_is_refused(change, match, tmp_path):
    unpacked("3.3", "lenet", tmp_path)
    file = tmp_path / "lenet.json"
    file.write_text(changed(json.loads(file.read_text()), change))
    refused(file, match)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("[" * 100_000, "nested too deeply|JSON"),
        ('{"a": NaN}', "NaN is not a number of JSON"),
        ('{"base_code": {"magic": "pir", "version": 99}}', "no program of PIR in a version up to 4"),
        ("[]", "an object is expected"),
        ('{"base_code": {"magic": "pir", "version": 1}, "program": {"regions": []}}', "one region, not 0"),
        ("\udcff", "no text"),
        ("[" + "0," * 5_000_000 + "0]", "holds too much"),
    ],
)
def test_a_text_that_is_no_program_is_refused(text, match, tmp_path):
    file = tmp_path / "m.json"
    file.write_bytes(text.encode(errors="surrogateescape"))
    refused(file, match)


def test_a_bit_that_is_wrong_is_refused_or_harmless(tmp_path):
    path, _ = unpacked("2.6", "turns", tmp_path)
    file = tmp_path / "turns.pdmodel"
    whole = file.read_bytes()
    for at in range(0, len(whole), max(len(whole) // 60, 1)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        try:
            paddle.jit.load(path)
        except (FileFormatError, FileNotFoundError):
            continue
