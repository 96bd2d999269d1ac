"""The promotion table, whole: where any two dtypes meet, and where a dtype meets a Python number."""

import operator

import numpy as np
import pytest

import dy2st as paddle
from dy2st.dtypes import ALL, DType, dtype, kind_of_number, of_array, promote, promote_number, true_divide

NAMES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
TABLE = """
            bool  uint8 int8  int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128
bool        b     u8    i8    i16   i32   i64   f16     bf16     f32     f64     c64       c128
uint8       u8    u8    i16   i16   i32   i64   f16     bf16     f32     f64     c64       c128
int8        i8    i16   i8    i16   i32   i64   f16     bf16     f32     f64     c64       c128
int16       i16   i16   i16   i16   i32   i64   f16     bf16     f32     f64     c64       c128
int32       i32   i32   i32   i32   i32   i64   f16     bf16     f32     f64     c64       c128
int64       i64   i64   i64   i64   i64   i64   f16     bf16     f32     f64     c64       c128
float16     f16   f16   f16   f16   f16   f16   f16     f32      f32     f64     c64       c128
bfloat16    bf16  bf16  bf16  bf16  bf16  bf16  f32     bf16     f32     f64     c64       c128
float32     f32   f32   f32   f32   f32   f32   f32     f32      f32     f64     c64       c128
float64     f64   f64   f64   f64   f64   f64   f64     f64      f64     f64     c128      c128
complex64   c64   c64   c64   c64   c64   c64   c64     c64      c64     c128    c64       c128
complex128  c128  c128  c128  c128  c128  c128  c128    c128     c128    c128    c128      c128
"""
SHORT = {"b": "bool", "u8": "uint8", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16",
         "bf16": "bfloat16", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128"}  # fmt: skip
NUMBERS = """
            bool  int   float complex
bool        b     i64   f32   c64
uint8       u8    u8    f32   c64
int8        i8    i8    f32   c64
int16       i16   i16   f32   c64
int32       i32   i32   f32   c64
int64       i64   i64   f32   c64
float16     f16   f16   f16   c64
bfloat16    bf16  bf16  bf16  c64
float32     f32   f32   f32   c64
float64     f64   f64   f64   c128
complex64   c64   c64   c64   c64
complex128  c128  c128  c128  c128
"""
EXAMPLES = {"bool": True, "int": 3, "float": 1.5, "complex": 2j}


def cells(table):
    head, *rows = [line.split() for line in table.strip().splitlines()]
    return [(row[0], column, SHORT[cell]) for row in rows for column, cell in zip(head, row[1:], strict=True)]


def test_the_table_names_every_dtype():
    assert [t.name for t in ALL] == NAMES
    assert len(cells(TABLE)) == len(NAMES) ** 2
    assert len(cells(NUMBERS)) == 4 * len(NAMES)


@pytest.mark.parametrize(("a", "b", "want"), cells(TABLE))
def test_two_dtypes_meet_as_the_table_says(a, b, want):
    assert promote(dtype(a), dtype(b)) is dtype(want)
    made = paddle.ones([2], a) * paddle.ones([2], b)
    assert made.dtype is dtype(want)


@pytest.mark.parametrize(("a", "kind", "want"), cells(NUMBERS))
def test_a_dtype_meets_a_number_as_the_table_says(a, kind, want):
    number = EXAMPLES[kind]
    assert kind_of_number(number) == kind
    assert promote_number(dtype(a), number) is dtype(want)
    x = paddle.ones([2], a)
    assert (x * number).dtype is dtype(want)
    assert (number * x).dtype is dtype(want)


@pytest.mark.parametrize("name", NAMES)
def test_a_quotient_of_integers_is_the_default_float(name):
    want = name if dtype(name).kind in "fc" else "float32"
    assert true_divide(dtype(name)) == want
    assert operator.truediv(paddle.ones([2], name), paddle.ones([2], name)).dtype == want
    if dtype(name).kind != "c":
        assert (paddle.ones([2], name) / 2).dtype == want


@pytest.mark.parametrize("name", NAMES)
def test_a_dtype_is_its_name_and_numpy_s_dtype(name):
    t = dtype(name)
    assert isinstance(t, DType)
    assert t == name
    assert t == f"paddle.{name}"
    assert t == np.dtype(name)
    assert dtype(np.dtype(name)) is t
    assert of_array(np.zeros(1, name)) is t
    assert repr(t) == f"paddle.{name}"
    assert {t: 1}[dtype(name)] == 1


@pytest.mark.parametrize(("spec", "name"), [
    ("float", "float32"), ("double", "float64"), ("half", "float16"), ("int", "int64"), ("long", "int64"),
    (bool, "bool"), (int, "int64"), (float, "float64"), (complex, "complex128"), (np.float64, "float64"),
])  # fmt: skip
def test_a_dtype_has_other_names(spec, name):
    assert dtype(spec).name == name


def test_an_unknown_dtype_is_refused():
    with pytest.raises(TypeError, match="unknown dtype 'float99'; known: bool, uint8"):
        dtype("float99")
    with pytest.raises(TypeError, match="arrays of dtype object cannot become tensors; cast to one of bool, uint8"):
        of_array(np.array([None]))


def test_numbers_of_python_are_wide_as_dtypes_and_lists_take_the_default():
    assert paddle.ones([1]).astype(float).dtype is paddle.float64
    assert paddle.zeros([1], dtype=complex).dtype is paddle.complex128
    assert paddle.to_tensor([np.float64(1.5)]).dtype is paddle.float32
    assert paddle.to_tensor([np.array([1.5]), np.array([2.5])]).dtype is paddle.float32
    assert paddle.to_tensor(np.array([1.5])).dtype is paddle.float64
    assert paddle.to_tensor([np.int32(1)]).dtype is paddle.int32


@pytest.mark.proves("uint16")
def test_uint16_is_bfloat16_as_in_paddle():
    assert paddle.uint16 is paddle.bfloat16
    assert paddle.ones([2], "uint16").dtype == "bfloat16"
