"""Sparse tensors: the places of elements and their values, as a list of places (COO) or row by row (CSR).

Places and values are tensors, so what is done with them is differentiated, and converted, as anything else is.
"""

from __future__ import annotations

from math import prod
from typing import Any

from dy2st import dtypes
from dy2st.dtypes import DType
from dy2st.dtypes import dtype as as_dtype
from dy2st.functions.core.operands import cast_to, tensor, whole
from dy2st.functions.math.reduction import any as any_of
from dy2st.functions.math.reduction import cumsum, max
from dy2st.functions.math.search import argsort, nonzero, searchsorted, unique
from dy2st.functions.shape.concat_split import concat, stack
from dy2st.functions.shape.creation import arange, zeros
from dy2st.functions.shape.from_data import to_tensor
from dy2st.functions.shape.gather_scatter import gather, gather_nd, index_add, scatter_nd
from dy2st.functions.shape.manipulation import reshape, transpose
from dy2st.runtime.eager.tensor import Tensor


class _Sparse:
    """What both kinds are."""

    shape: list[Any]
    _values: Tensor
    name = ""

    @property
    def dtype(self) -> DType:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def stop_gradient(self) -> bool:
        """Whether no gradient flows to the values."""
        return self._values.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, stop: bool) -> None:
        self._values.stop_gradient = stop

    @property
    def grad(self) -> Any:
        """The gradient of the values, at their places."""
        grad = self._values.grad
        return None if grad is None else self.with_values(grad)

    @property
    def place(self) -> Any:
        """Where the values live."""
        return self._values.place

    def with_values(self, values: Tensor) -> Any:
        """Return other values at the same places."""
        raise NotImplementedError

    def to_dense(self) -> Tensor:
        """Return a dense tensor, zeros where there is no value."""
        raise NotImplementedError

    def to_sparse_coo(self, sparse_dim: int | None = None) -> SparseCooTensor:
        """Return the same as a list of places."""
        raise NotImplementedError

    def values(self) -> Tensor:
        """Return the values."""
        return self._values

    def nnz(self) -> Any:
        """Return how many values there are."""
        return self._values.shape[0]

    def numpy(self) -> Any:
        """Return the dense array."""
        return self.to_dense().numpy()

    def astype(self, dtype: Any) -> Any:
        """Return the values in another dtype."""
        return self.with_values(cast_to(self._values, as_dtype(dtype)))

    cast = astype

    def detach(self) -> Any:
        """Return the same values without a history."""
        return self.with_values(self._values.detach())

    def backward(self, grad_tensor: Any = None, retain_graph: bool = False) -> None:
        """Let gradients flow from the values."""
        given = grad_tensor._values if isinstance(grad_tensor, _Sparse) else grad_tensor
        self._values.backward(given, retain_graph)

    def is_sparse(self) -> bool:
        """Return True."""
        return True

    def is_dense(self) -> bool:
        """Return False."""
        return False

    def is_sparse_coo(self) -> bool:
        """Return whether places are listed."""
        return isinstance(self, SparseCooTensor)

    def is_sparse_csr(self) -> bool:
        """Return whether places are kept row by row."""
        return isinstance(self, SparseCsrTensor)

    def __len__(self) -> int:
        return self.shape[0]

    def __neg__(self) -> Any:
        return self.with_values(-self._values)


class SparseCooTensor(_Sparse):
    """Values [count, ...] at places [axes, count]; axes behind those of the places are dense."""

    def __init__(self, indices: Tensor, values: Tensor, shape: list[Any], coalesced: bool = False):
        self._indices, self._values, self.shape, self._coalesced = indices, values, list(shape), coalesced

    def with_values(self, values: Tensor) -> SparseCooTensor:
        return SparseCooTensor(self._indices, values, [*self.shape[: self.sparse_dim()], *values.shape[1:]],
                               self._coalesced)  # fmt: skip

    def indices(self) -> Tensor:
        """Return the places, an axis a row."""
        return self._indices

    def sparse_dim(self) -> int:
        """Return how many axes places have."""
        return self._indices.shape[0]

    def dense_dim(self) -> int:
        """Return how many axes each value has."""
        return self._values.ndim - 1

    def is_coalesced(self) -> bool:
        """Return whether `coalesce` made this."""
        return self._coalesced

    def coalesce(self) -> SparseCooTensor:
        """Return the sums of values at the same place, in the order of places."""
        axes = self.shape[: self.sparse_dim()]
        flat = _flat(self._indices, axes)
        found, inverse = unique(flat, return_inverse=True)
        total = zeros([found.shape[0], *self._values.shape[1:]], self.dtype)
        return SparseCooTensor(_unflat(found, axes), index_add(total, reshape(inverse, [-1]), 0, self._values),
                               self.shape, True)  # fmt: skip

    def to_dense(self) -> Tensor:
        return scatter_nd(transpose(self._indices, [1, 0]), self._values, self.shape)

    def to_sparse_coo(self, sparse_dim: int | None = None) -> SparseCooTensor:
        """Return it."""
        return self

    def to_sparse_csr(self) -> SparseCsrTensor:
        """Return the same, row by row; it needs two axes, or three of which the first counts matrices."""
        if self.ndim not in (2, 3) or self.dense_dim():
            raise ValueError(f"a CSR tensor has 2 or 3 sparse axes, not the shape {self.shape}")
        made = self.coalesce()
        batch = made.shape[0] if self.ndim == 3 else 1
        rows = made._indices[-2] + (made._indices[0] * made.shape[-2] if self.ndim == 3 else 0)
        return SparseCsrTensor(_starts(rows, batch, made.shape[-2]), made._indices[-1], made._values, made.shape)

    def t(self) -> SparseCooTensor:
        """Return the matrix with its axes swapped."""
        return self.transpose([1, 0])

    def transpose(self, perm: Any) -> SparseCooTensor:
        """Return it with its axes in another order."""
        sparse, perm = self.sparse_dim(), list(perm)
        if sorted(perm[:sparse]) != list(range(sparse)):
            raise ValueError(f"transpose: sparse axes cannot change places with dense ones, as {perm} asks for")
        rest = [0, *(p - sparse + 1 for p in perm[sparse:])]
        values = transpose(self._values, rest) if len(rest) > 1 else self._values
        rows = stack([self._indices[p] for p in perm[:sparse]])
        return SparseCooTensor(rows, values, [self.shape[p] for p in perm])

    def __repr__(self) -> str:
        return f"SparseCooTensor(shape={self.shape}, indices={self._indices!r}, values={self._values!r})"


class SparseCsrTensor(_Sparse):
    """Values in the order of rows: those of row i from `crows[i]` to `crows[i + 1]`, in the columns `cols`."""

    def __init__(self, crows: Tensor, cols: Tensor, values: Tensor, shape: list[Any]):
        self._crows, self._cols, self._values, self.shape = crows, cols, values, list(shape)

    def with_values(self, values: Tensor) -> SparseCsrTensor:
        return SparseCsrTensor(self._crows, self._cols, values, self.shape)

    def crows(self) -> Tensor:
        """Return where rows begin."""
        return self._crows

    def cols(self) -> Tensor:
        """Return the columns of the values."""
        return self._cols

    def rows(self) -> Tensor:
        """Return the row of each value, counted through all matrices."""
        starts = cast_to(self._crows, dtypes.int64)
        if self.ndim == 3:
            each = reshape(starts, [self.shape[0], -1])
            before = cumsum(each[:, -1], 0) - each[:, -1]
            starts = concat([reshape(each[:, :-1] + before.unsqueeze(1), [-1]), each[:, -1].sum().reshape([1])])
        return searchsorted(starts, arange(self._values.shape[0]), right=True) - 1

    def to_sparse_coo(self, sparse_dim: int | None = None) -> SparseCooTensor:
        """Return the same as a list of places."""
        rows, cols = self.rows(), cast_to(self._cols, dtypes.int64)
        front = [rows // self.shape[-2], rows % self.shape[-2]] if self.ndim == 3 else [rows]
        return SparseCooTensor(stack([*front, cols]), self._values, self.shape, True)

    def to_sparse_csr(self) -> SparseCsrTensor:
        """Return it."""
        return self

    def to_dense(self) -> Tensor:
        return self.to_sparse_coo().to_dense()

    def t(self) -> SparseCsrTensor:
        """Return the matrix with its axes swapped."""
        return self.transpose([1, 0])

    def transpose(self, perm: Any) -> SparseCsrTensor:
        """Return it with its axes in another order."""
        return self.to_sparse_coo().transpose(perm).to_sparse_csr()

    def __repr__(self) -> str:
        parts = f"crows={self._crows!r}, cols={self._cols!r}, values={self._values!r}"
        return f"SparseCsrTensor(shape={self.shape}, {parts})"


def sparse_coo_tensor(
    indices: Any, values: Any, shape: Any = None, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> SparseCooTensor:
    """Return values at places; the shape is the smallest that has them unless it is given.

    >>> import dy2st as paddle
    >>> paddle.sparse.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0]).to_dense().tolist()
    [[0.0, 0.0, 3.0], [4.0, 0.0, 0.0]]
    """
    at = cast_to(_given(indices, None), dtypes.int64)
    found = _given(values, dtype)
    if at.ndim != 2:
        raise ValueError(f"sparse_coo_tensor: indices are [axes, count], not {at.shape}")
    if shape is None:
        shape = [*(whole(n, "shape") for n in (max(at, 1) + 1).tolist()), *found.shape[1:]]
    return SparseCooTensor(at, _leaf(found, values, stop_gradient), list(shape))


def sparse_csr_tensor(
    crows: Any, cols: Any, values: Any, shape: Any, dtype: Any = None, place: Any = None, stop_gradient: bool = True
) -> SparseCsrTensor:
    """Return values row by row: those of row i stand from `crows[i]` to `crows[i + 1]`, in the columns `cols`."""
    found = _given(values, dtype)
    return SparseCsrTensor(_given(crows, None), _given(cols, None), _leaf(found, values, stop_gradient), list(shape))


def to_sparse_coo(x: Any, sparse_dim: int | None = None) -> SparseCooTensor:
    """Return the places where a dense tensor is not 0, in its first `sparse_dim` axes, and what is there."""
    x = tensor(x, "to_sparse_coo")
    count = x.ndim if sparse_dim is None else sparse_dim
    there = x != 0
    there = any_of(there, list(range(count, x.ndim))) if count < x.ndim else there
    places = nonzero(there)
    return SparseCooTensor(transpose(places, [1, 0]), gather_nd(x, places), list(x.shape), True)


def to_sparse_csr(x: Any) -> SparseCsrTensor:
    """Return a dense matrix, or several, row by row without zeros."""
    return to_sparse_coo(x).to_sparse_csr()


def ordered(rows: Tensor, *others: Tensor) -> list[Tensor]:
    """Return tensors in the order of the first, which is the first of them."""
    order = argsort(rows, stable=True)
    return [gather(t, order) for t in (rows, *others)]


def _given(value: Any, dtype: Any) -> Tensor:
    made = value if isinstance(value, Tensor) else to_tensor(value)
    return made if dtype is None else cast_to(made, as_dtype(dtype))


def _leaf(found: Tensor, given: Any, stop_gradient: bool) -> Tensor:
    if not isinstance(given, Tensor) or (given.stop_gradient and not stop_gradient):
        found = found.detach()
        found.stop_gradient = stop_gradient
    return found


def _starts(rows: Tensor, batch: Any, height: Any) -> Tensor:
    """Return where each row begins among values in the order of rows: for each matrix from 0 on."""
    edges = searchsorted(rows, arange(batch * height + 1))
    first = reshape(edges[:-1], [batch, height])
    last = concat([first[1:, :1], edges[-1].reshape([1, 1])])
    return reshape(concat([first, last], 1) - first[:, :1], [-1])


def _flat(indices: Tensor, axes: list[Any]) -> Tensor:
    total = indices[0]
    for i in range(1, len(axes)):
        total = total * axes[i] + indices[i]
    return total


def _unflat(flat: Tensor, axes: list[Any]) -> Tensor:
    return stack([flat // prod(axes[i + 1 :]) % axes[i] for i in range(len(axes))])
