"""The names of TensorFlow that AutoGraph's reference tests use, on dy2st: what their functions are run with.

A type of TensorFlow's own becomes the plainest Python that acts as the tests need: a `Variable` is an object with a
tensor, a `Dataset` and a ragged tensor are rows that can be iterated, a `TensorArray` is a list. Sparse tensors have no
counterpart; what asks for them raises `OwnType`.
"""

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import dy2st as paddle


class OwnType(Exception):
    """A test needs a type of TensorFlow's own that has no counterpart."""


class Variable:
    def __init__(self, value: Any):
        self.value = constant(value)

    def assign(self, value: Any) -> None:
        self.value = constant(value)

    def assign_add(self, value: Any) -> None:
        self.value = self.value + value

    def read_value(self) -> Any:
        return self.value


class TensorArray:
    def __init__(self, dtype: str, size: int = 0, **how: Any):
        self.dtype = dtype
        self.items = []

    def write(self, index: Any, value: Any) -> Any:
        if index < len(self.items):
            self.items[index] = constant(value, self.dtype)
        else:
            self.items.append(constant(value, self.dtype))
        return self

    def size(self) -> Any:
        return len(self.items)

    def stack(self) -> Any:
        if len(self.items) == 0:
            return paddle.zeros([0], self.dtype)
        return paddle.stack(self.items)


class Dataset:
    def __init__(self, rows: Any):
        self.rows = rows

    @staticmethod
    def from_tensor_slices(rows: Any) -> Any:
        return Dataset(constant(rows))

    @staticmethod
    def range(n: int) -> Any:
        return Dataset(paddle.arange(n, dtype="int64"))

    def map(self, f: Callable[[Any], Any]) -> Any:
        return Dataset([f(row) for row in self.rows])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.rows)


class MirroredStrategy:
    """One replica."""

    def experimental_distribute_dataset(self, rows: Any) -> Any:
        return rows

    def reduce(self, how: str, value: Any, axis: int) -> Any:
        return paddle.sum(value, axis=axis)


def constant(value: Any, dtype: Any = None) -> Any:
    """Return a tensor; TensorFlow's integers have 32 bits, and no elements are float32."""
    if isinstance(value, paddle.Tensor):
        return value if dtype is None else paddle.cast(value, dtype)
    if dtype is None and not isinstance(value, (bool, float, str)):
        dtype = dtype_of(value)
    return paddle.to_tensor(value, dtype)


def dtype_of(value: Any) -> Any:
    if isinstance(value, int):
        return "int32"
    if isinstance(value, (list, tuple)) and len(value) > 0:
        return dtype_of(value[0])
    return None


def ragged_constant(rows: Any, dtype: Any) -> Any:
    return [constant(row, dtype) for row in rows]


def range_(*bounds: Any) -> Any:
    return paddle.arange(*bounds, dtype="int32")


def uniform(shape: Any, low: Any, high: Any, dtype: str) -> Any:
    """Return `low` .. `high` - 1, the ends being one apart wherever the tests ask."""
    return constant(low, dtype)


def pad(x: Any, widths: list[list[int]], constant_values: Any) -> Any:
    (top, bottom), (left, right) = widths
    rows, columns = x.shape
    sides = paddle.full([rows, 1], constant_values, x.dtype)
    x = paddle.concat([sides] * left + [x] + [sides] * right, 1)
    ends = paddle.full([1, columns + left + right], constant_values, x.dtype)
    return paddle.concat([ends] * top + [x] + [ends] * bottom, 0)


def concat(parts: Any, axis: int) -> Any:
    return paddle.concat([constant_like(part, parts[0]) for part in parts], axis)


def constant_like(value: Any, like: Any) -> Any:
    """Return a tensor of a nest of lists that may hold tensors."""
    if isinstance(value, list):
        return paddle.stack([constant_like(item, like) for item in value])
    return constant(value, like.dtype)


def zeros(shape: Any) -> Any:
    return paddle.zeros(shape)


def ones(shape: Any) -> Any:
    return paddle.ones(shape)


def print_(*parts: Any) -> None:
    print(*parts)


def identity(x: Any) -> Any:
    return constant(x) + 0


def abs_(x: Any) -> Any:
    return paddle.abs(constant(x))


def greater(x: Any, y: Any) -> Any:
    return paddle.greater_than(constant(x), constant(y))


def name_scope(name: str) -> Any:
    return contextlib.nullcontext()


def note(*what: Any, **how: Any) -> None:
    """Take a hint for TensorFlow's converter, which needs none here."""


def own_type(name: str) -> Callable[..., Any]:
    def refuse(*what: Any, **how: Any) -> Any:
        raise OwnType(f"tf.{name}")

    return refuse


def namespace(**names: Any) -> types.SimpleNamespace:
    return types.SimpleNamespace(**names)


EXPERIMENTAL = namespace(
    Feature=namespace(LISTS=None, EQUALITY_OPERATORS=None, BUILTIN_FUNCTIONS=None, ASSERT_STATEMENTS=None),
    set_loop_options=note,
)
DEVICES = namespace(list_physical_devices=lambda kind: [kind], set_virtual_device_configuration=note,
                    VirtualDeviceConfiguration=note)  # fmt: skip
NAMES: dict[str, Any] = {
    "Tensor": paddle.Tensor, "Variable": Variable, "TensorArray": TensorArray, "TensorShape": lambda extents: extents,
    "int32": "int32", "int64": "int64", "float32": "float32", "newaxis": None,
    "data": namespace(Dataset=Dataset), "distribute": namespace(MirroredStrategy=MirroredStrategy),
    "constant": constant, "ragged": namespace(constant=ragged_constant), "random": namespace(uniform=uniform),
    "range": range_, "zeros": zeros, "ones": ones, "eye": paddle.eye, "pad": pad, "concat": concat,
    "cast": paddle.cast, "reshape": paddle.reshape, "stack": paddle.stack, "reduce_sum": paddle.sum,
    "identity": identity, "abs": abs_, "greater": greater, "print": print_, "name_scope": name_scope,
    "errors": namespace(InvalidArgumentError=ValueError, OutOfRangeError=StopIteration),
    "autograph": namespace(experimental=EXPERIMENTAL), "config": namespace(experimental=DEVICES),
    "SparseTensor": own_type("SparseTensor"), "sparse": namespace(expand_dims=own_type("sparse.expand_dims")),
}  # fmt: skip
SPECIAL = namespace(stack=lambda items, strict: paddle.stack(list(map(constant, items))))
