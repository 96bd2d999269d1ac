"""The place that `functions/methods.py` fills with Tensor's operators and methods.

They are declared in `tensor_methods.pyi`, for type checkers and editors; `tests/runtime/test_tensor_methods.py` writes
that file and holds it to what is attached.
"""


class TensorMethods:
    """Operators and methods of tensors."""

    __slots__ = ()
