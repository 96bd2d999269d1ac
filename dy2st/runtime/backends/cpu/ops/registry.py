"""The table of rules: which function writes which operation.

A file of rules is loaded with the first of its operations that is written: a Program has few families of them, and all
files take 10 ms to load.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence

from dy2st.runtime.backends.cpu.emitter.function_emitter import Rule
from dy2st.runtime.backends.cpu.llvm_ir.value_layout import Components

FAMILIES = {
    "indexing.along_axis": "take_along_axis put_along_axis combine_along_axis last_writer",
    "nn.attention": "attention attention_grad attention_mask_grad",
    "nn.gather_tree": "gather_tree",
    "indexing.getitem": "index index_set index_add index_last",
    "matrix.broadcast": "broadcast sum_to",
    "nn.adaptive_max_pool": "adaptive_max_pool",
    "nn.class_indices": "class_places keep_at",
    "matrix.complex_products": "cumprod",
    "control.control_flow": "cond while_loop counted_while call try assert",
    "indexing.creation": "arange linspace eye one_hot diagonal_embed",
    "nn.random": "random_uniform random_normal random_exponential random_int random_bernoulli random_permutation",
    "matrix.lu": "lu",
    "matrix.argmax": "argmax argmin",
    "matrix.fft": "fft",
    "indexing.concat": "concat stack",
    "matrix.linalg": "inverse solve det slogdet cholesky eigh svd eig qr",
    "containers.list_slicing": (
        "list_extend list_insert list_spread list_remove list_bounds list_part slots_part list_reverse "
        "slots_reverse slots_extend"
    ),
    "containers.list_stack": "list_stack list_concat list_extents list_unstack list_split",
    "containers.list_to_tensor": "list_popped list_to_tensor list_stack_tangent",
    "containers.lists": "list_new list_len list_append list_index list_get list_pop list_set",
    "containers.scalar_functions": "scalar_pow scalar_round",
    "containers.scalars": (
        "scalar_constant scalar_add scalar_sub scalar_mul scalar_truediv scalar_floordiv scalar_mod scalar_lt "
        "scalar_le scalar_eq scalar_ne scalar_gt scalar_ge scalar_min scalar_max scalar_and scalar_or scalar_xor "
        "scalar_neg scalar_abs scalar_bool scalar_not scalar_int scalar_float scalar_to_tensor broadcast_extent"
    ),
    "containers.optionals": "optional_add",
    "indexing.take": "take take_add",
    "matrix.matmul": "matmul matmul_add",
    "indexing.roll_pad": "flip diagonal tril triu bitcast roll pad",
    "matrix.quantized": "quantized_matmul",
    "matrix.reductions": "sum mean max top min prod all any",
    "matrix.scans": "cumsum linear_scan cummax cummin",
    "indexing.gather_nd": "gather_nd scatter_nd_add masked_select nonzero",
    "containers.list_cotangents": "list_take list_clear list_put list_accumulate",
    "matrix.sorting": "sort argsort topk",
    "tensors": "constant dim item detach renew full expand_dims squeeze reshape",
    "containers.tuples": "tuple_new tuple_get",
    "containers.unions": "variant_new variant_tag variant_get variant_ct variant_wrap variant_cast variant_or_zeros",
    "views": "transpose split",
    "nn.conv_pool": (
        "conv conv_input_grad conv_weight_grad max_pool avg_pool avg_pool_grad adaptive_avg_pool adaptive_avg_pool_grad"
    ),
}
"""The ops that a file of this folder has rules for; other elementwise ones are written by elementwise.py."""
_WITH_PARTS = {
    "matmul": ("matrix.matmul", "multiplied"),
    "quantized_matmul": ("matrix.quantized", "quantized_with_parts"),
    "conv": ("nn.conv_pool", "convolved"),
}
FILES = {name: file for file, names in FAMILIES.items() for name in names.split()}
_rules: dict[str, Rule] = {}
_reads_gaps: set[str] = set()
_carries: set[str] = set()


def rule(*names: str, reads_gaps: bool = False, carries: bool = False) -> Callable[[Rule], Rule]:
    """Enter a function as the rule of these ops: one that reads tensors with gaps, or that only carries small tensors
    and takes them as they are.
    """

    def enter(function: Rule) -> Rule:
        file = function.__module__.removeprefix(f"{__package__}.")
        for name in names:
            if FILES.get(name) != file:
                raise ValueError(f"FAMILIES in registry.py does not say that {file} has the rule of {name!r}")
            if name in _rules:
                raise ValueError(f"two rules write {name!r}")
            _rules[name] = function
            _reads_gaps.update({name} if reads_gaps else ())
            _carries.update({name} if carries else ())
        return function

    return enter


def rule_of(name: str) -> Rule | None:
    """Return the function that writes an op; None for an op whose `eval` is called.

    >>> rule_of("matmul").__name__, rule_of("tanh").__name__, rule_of("print")
    ('matmul', 'write', None)
    """
    file = FILES.get(name)
    if file is None:
        return importlib.import_module("dy2st.runtime.backends.cpu.ops.elementwise").rule_of_elementwise(name)
    if name not in _rules:
        importlib.import_module(f"dy2st.runtime.backends.cpu.ops.{file}")
    return _rules[name]


def reads_gaps(name: str) -> bool:
    """Return whether the rule of an op reads tensors with gaps.

    >>> reads_gaps("transpose"), reads_gaps("sort")
    (True, False)
    """
    return rule_of(name) is not None and name in _reads_gaps


def carries(name: str) -> bool:
    """Return whether the rule of an op takes small tensors as they are, since it only carries them; for the others they
    stand in memory.

    >>> carries("cond"), carries("sort")
    (True, False)
    """
    return rule_of(name) is not None and name in _carries


def with_parts(name: str) -> Callable[..., Sequence[Components]]:
    """Return the function that writes a product, and also what is done with its parts.

    >>> with_parts("matmul").__name__, with_parts("conv").__name__
    ('multiplied', 'convolved')
    """
    file, function = _WITH_PARTS[name]
    return getattr(importlib.import_module(f"dy2st.runtime.backends.cpu.ops.{file}"), function)
