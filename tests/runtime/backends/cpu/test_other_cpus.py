"""Code for a CPU of another kind than this one is generated and assembled."""

import pytest

from dy2st.runtime.backends.cpu.compile_link.code_loader import compile_object
from dy2st.runtime.backends.cpu.compile_link.llvm_loader import binding
from dy2st.runtime.backends.cpu.compile_link.target import Target
from dy2st.runtime.backends.cpu.conv import (
    convolution_kernel,
    input_gradient_kernel,
    max_pool_kernel,
    mean_pool_gradient_kernel,
    mean_pool_kernel,
    weight_gradient_kernel,
)
from dy2st.runtime.backends.cpu.gemm import matmul_kernel
from dy2st.runtime.backends.cpu.libm import function, load_formulas
from dy2st.runtime.backends.cpu.llvm_ir.definition import gathered
from dy2st.runtime.backends.cpu.vector_ops import philox

ARM = Target("aarch64-unknown-linux-gnu", "generic", "", 16)


@pytest.fixture(scope="module", autouse=True)
def all_targets():
    binding().initialize_all_targets()
    binding().initialize_all_asmprinters()


def assembled(definitions):
    text = gathered(definitions).replace("define internal", "define").replace("alwaysinline", "")
    return compile_object(text, ARM)


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_elementary_functions(dtype):
    data = assembled([function(name, dtype, ARM.lanes(4 if dtype == "f32" else 8)) for name in load_formulas()])
    assert data.startswith(b"\x7fELF")
    for name in (b"expf", b"sinf", b"fmodf", b"__multi3", b"fmaf"):
        assert name not in data


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("make", [convolution_kernel, input_gradient_kernel, weight_gradient_kernel, max_pool_kernel,
                                  mean_pool_kernel, mean_pool_gradient_kernel])  # fmt: skip
def test_convolutions_and_pooling(make, dtype):
    data = assembled([make(dtype, ARM)])
    assert data.startswith(b"\x7fELF")
    assert b"memcpy" not in data


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_products(dtype):
    data = assembled([matmul_kernel(dtype, a, b, ARM) for a in (False, True) for b in (False, True)])
    assert data.startswith(b"\x7fELF")


def test_random_numbers():
    made = [philox.random_words(4), philox.random_words64(2), philox.random_uniform("f32", 4), philox.random_int(2),
            philox.random_normal("f64", 2)]  # fmt: skip
    assert assembled(made).startswith(b"\x7fELF")
