"""Ops without a rule, and why: what an error says of them. Whoever writes a rule takes its op away here."""

from __future__ import annotations

from dy2st.ir.opdef import REGISTRY
from dy2st.onnx.writing.writer import REASONS


def _without(reason: str, *names: str) -> None:
    for name in names:
        REASONS[name] = reason


_without("a model prints, logs and warns of nothing", "log_record", "print", "warn")
_without("a model raises no errors of its own", "assert", "raise", "try")
for _name, _op in REGISTRY.items():
    if _op.exchanges:
        _without("a model runs in one process", _name)
_without("it calls Python", "host_call", "host_tangent")
_without("ONNX's operators take no complex numbers", "complex", "conj", "fft", "imag", "real", "eig")
_without("no operator reads the bits of a number", "bitcast", "nextafter")
_without(
    "ONNX has no such function of numbers",
    "digamma",
    "erfinv",
    "gammainc",
    "gammaincc",
    "i0e",
    "i1e",
    "lgamma",
    "polygamma",
)
_without("ONNX has no such function of integers", "gcd", "lcm")
_without("ONNX has no factorization or inverse of matrices", "cholesky", "eigh", "inverse", "lu", "qr", "slogdet",
         "solve", "svd")  # fmt: skip
_without("ONNX has no adjugate and no exponential of matrices", "adjugate", "adjugate_slope", "matrix_exp",
         "matrix_exp_slope")  # fmt: skip
_without("its random numbers are those of Philox, and ONNX's are any", "random_bernoulli", "random_exponential",
         "random_int", "random_normal", "random_permutation", "random_uniform")  # fmt: skip
_without("it is part of a derivative of lists", "list_concat_tangent", "list_remove", "list_split", "list_spread",
         "list_stack_tangent", "list_unstack", "slots_extend", "slots_narrow", "slots_part", "slots_reverse",
         "slots_widen")  # fmt: skip
_without("it is a derivative that ONNX has no operator for", "adaptive_avg_pool_grad", "attention_grad",
         "attention_mask_grad", "avg_pool_grad")  # fmt: skip
_without("a gradient written by hand stays in a Program until it is taken", "with_gradient")
_without("ONNX's pooling has no windows of different sizes", "adaptive_max_pool")
_without("ONNX has no search through beams", "gather_tree")
