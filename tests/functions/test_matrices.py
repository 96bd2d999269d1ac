"""Functions of matrices against NumPy, in eager mode and in a Program; their derivatives against differences."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st import linalg
from dy2st.errors import AutodiffError

R = np.random.default_rng(0)
A = R.normal(size=(2, 3, 3)) + 3 * np.eye(3)
S = A @ A.swapaxes(-1, -2)
TALL, WIDE = R.normal(size=(5, 3)), R.normal(size=(3, 5))
Y = R.normal(size=(2, 3, 2))
L = np.linalg.cholesky(S)
CASES = {
    "inv": (linalg.inv, (A,), np.linalg.inv(A)),
    "det": (linalg.det, (A,), np.linalg.det(A)),
    "slogdet": (linalg.slogdet, (A,), np.stack(np.linalg.slogdet(A))),
    "solve": (linalg.solve, (A, Y), np.linalg.solve(A, Y)),
    "solve vector": (linalg.solve, (A[0], Y[0, :, 0]), np.linalg.solve(A[0], Y[0, :, 0])),
    "solve right": (lambda a, y: linalg.solve(a, y, left=False), (A, A + 1), (A + 1) @ np.linalg.inv(A)),
    "upper": (linalg.triangular_solve, (A, Y), np.linalg.solve(np.triu(A), Y)),
    "lower transposed": (
        lambda a, y: linalg.triangular_solve(a, y, upper=False, transpose=True, unitriangular=True),
        (A, Y),
        np.linalg.solve((np.tril(A, -1) + np.eye(3)).swapaxes(-1, -2), Y),
    ),
    "cholesky": (linalg.cholesky, (S,), L),
    "cholesky upper": (lambda s: linalg.cholesky(s, upper=True), (S,), L.swapaxes(-1, -2)),
    "cholesky_solve": (lambda y, low: linalg.cholesky_solve(y, low), (Y, L), np.linalg.solve(S, Y)),
    "cholesky_inverse": (linalg.cholesky_inverse, (L,), np.linalg.inv(S)),
    "eigvalsh": (linalg.eigvalsh, (S,), np.linalg.eigvalsh(S)),
    "eigvalsh of a triangle": (lambda s: linalg.eigvalsh(s, "U"), (np.triu(S),), np.linalg.eigvalsh(S)),
    "svdvals": (linalg.svdvals, (TALL,), np.linalg.svd(TALL, compute_uv=False)),
    "pinv": (linalg.pinv, (TALL,), np.linalg.pinv(TALL)),
    "pinv wide": (linalg.pinv, (WIDE,), np.linalg.pinv(WIDE)),
    "pinv hermitian": (lambda s: linalg.pinv(s, hermitian=True), (S,), np.linalg.pinv(S, hermitian=True)),
    "cond": (linalg.cond, (A,), np.linalg.cond(A)),
    "cond -2": (lambda a: linalg.cond(a, -2), (A,), np.linalg.cond(A, -2)),
    "cond fro": (lambda a: linalg.cond(a, "fro"), (A,), np.linalg.cond(A, "fro")),
    "cond 1": (lambda a: linalg.cond(a, 1), (A,), np.linalg.cond(A, 1)),
    "corrcoef": (linalg.corrcoef, (TALL,), np.corrcoef(TALL)),
    "corrcoef columns": (lambda x: linalg.corrcoef(x, False), (TALL,), np.corrcoef(TALL, rowvar=False)),
    "corrcoef of a vector": (linalg.corrcoef, (TALL[0],), np.corrcoef(TALL[0])),
    "lstsq": (lambda x, y: linalg.lstsq(x, y)[0], (TALL, TALL[:, :2] ** 2),
              np.linalg.lstsq(TALL, TALL[:, :2] ** 2)[0]),
    "lstsq left over": (lambda x, y: linalg.lstsq(x, y)[1], (TALL, TALL[:, :2] ** 2),
                        np.linalg.lstsq(TALL, TALL[:, :2] ** 2)[1]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_value_is_numpys(name):
    function, operands, want = CASES[name]
    got = function(*map(paddle.to_tensor, operands))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)
    assert got.dtype == "float64"


@pytest.mark.parametrize("name", [name for name in CASES if "lstsq" not in name])
def test_static_is_eager(name):
    function, operands, want = CASES[name]
    got = paddle.jit.to_static(lambda *xs: function(*xs), full_graph=True)(*map(paddle.to_tensor, operands))
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in CASES if name != "eigvalsh of a triangle"])
def test_gradient_is_the_difference(name):
    function, operands, want = CASES[name]
    weights = np.cos(np.arange(want.size)).reshape(want.shape)
    x = paddle.to_tensor(operands[0], stop_gradient=False)
    rest = [paddle.to_tensor(o) for o in operands[1:]]
    (function(x, *rest) * paddle.to_tensor(weights)).sum().backward()
    way = R.normal(size=operands[0].shape)
    if name.startswith(("pinv hermitian", "eigvalsh", "cholesky")) and name not in ("cholesky_inverse",):
        way = way + way.swapaxes(-1, -2) if way.shape[-1] == way.shape[-2] else way
    high, low = (
        (function(paddle.to_tensor(operands[0] + h * way), *rest).numpy() * weights).sum() for h in (1e-5, -1e-5)
    )
    np.testing.assert_allclose((x.grad.numpy() * way).sum(), (high - low) / 2e-5, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("matrix", [TALL, WIDE, A])
def test_factors_multiply_to_the_matrix(matrix):
    x = paddle.to_tensor(matrix)
    q, r = linalg.qr(x)
    u, s, vh = linalg.svd(x)
    np.testing.assert_allclose((q @ r).numpy(), matrix, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(((u * s.unsqueeze(-2)) @ vh).numpy(), matrix, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(linalg.qr(x, mode="r").numpy(), r.numpy())
    values, vectors = linalg.eigh(paddle.to_tensor(S))
    np.testing.assert_allclose((vectors * values.unsqueeze(-2)).numpy(), S @ vectors.numpy(), rtol=1e-10)


@pytest.mark.proves("linalg.eig Tensor.eig")
def test_general_eigenvalues_are_complex_and_solve_their_equation():
    values, vectors = linalg.eig(paddle.to_tensor(A))
    assert values.dtype == "complex128"
    np.testing.assert_allclose(A @ vectors.numpy(), vectors.numpy() * values.numpy()[:, None], atol=1e-12)
    np.testing.assert_allclose(linalg.eigvals(paddle.to_tensor(A)).numpy(), values.numpy())
    assert linalg.eigvals(paddle.to_tensor(A.astype("float32"))).dtype == "complex64"


def test_rank_counts_singular_values():
    x = paddle.to_tensor(np.diag([3.0, 1e-3, 0.0]))
    assert [linalg.matrix_rank(x).item(), linalg.matrix_rank(x, tol=0.1).item()] == [2, 1]
    assert linalg.matrix_rank(x, hermitian=True, rtol=1e-2).item() == 1
    both = paddle.stack([x, paddle.eye(3, dtype="float64")])
    assert linalg.matrix_rank(both, atol=paddle.to_tensor([2.0, 0.5])).tolist() == [1, 3]


def test_inverse_is_a_function_and_keeps_float32():
    x = paddle.inverse(paddle.to_tensor([[2.0, 0.0], [0.0, 4.0]]))
    assert x.tolist() == [[0.5, 0.0], [0.0, 0.25]]
    assert x.dtype == "float32"
    assert paddle.inverse(paddle.to_tensor([[2, 0], [0, 4]])).tolist() == [[0.5, 0.0], [0.0, 0.25]]


def test_no_matrices_are_no_results():
    assert linalg.inv(paddle.zeros([0, 3, 3])).shape == [0, 3, 3]
    assert linalg.det(paddle.zeros([2, 0, 0])).tolist() == [1.0, 1.0]
    assert linalg.pinv(paddle.zeros([0, 3])).shape == [3, 0]
    assert linalg.matrix_rank(paddle.zeros([2, 0, 3])).tolist() == [0, 0]
    assert [t.shape for t in linalg.svd(paddle.zeros([2, 0, 3]))] == [[2, 0, 0], [2, 0], [2, 0, 3]]


def test_nan_comes_through():
    assert np.isnan(linalg.det(paddle.to_tensor([[np.nan, 0.0], [0.0, 1.0]])).item())


@pytest.mark.parametrize(
    ("call", "kind", "text"),
    [
        (lambda: linalg.inv(paddle.ones([2, 3])), ValueError, r"inverse needs square matrices, not the shape \[2, 3\]"),
        (lambda: linalg.inv(paddle.ones([3])), ValueError, r"inverse needs matrices, not a tensor of shape \[3\]"),
        (lambda: linalg.inv(paddle.zeros([2, 2])), ValueError, "Singular matrix"),
        (lambda: linalg.cholesky(paddle.ones([2, 2], "complex64")), TypeError, "complex matrices is not supported"),
        (lambda: linalg.inv(paddle.ones([2, 2], "float16")), TypeError, "float16 matrices is not supported"),
        (lambda: linalg.cholesky(paddle.to_tensor(-np.eye(2))), ValueError, "not positive definite"),
        (lambda: linalg.solve(paddle.ones([2, 3]), paddle.ones([2, 2])), ValueError, "solve needs square matrices"),
        (lambda: linalg.solve(paddle.ones([2, 2]), paddle.ones([3, 2])), ValueError, "do not fit 3 rows"),
        (lambda: linalg.qr(paddle.ones([2, 2]), mode="full"), ValueError, "mode must be 'reduced', 'complete' or 'r'"),
        (lambda: linalg.svd(paddle.ones([2, 2]), full_matrices=True), NotImplementedError, "full_matrices=True"),
        (lambda: linalg.eigh(paddle.ones([2, 2]), "X"), ValueError, "UPLO must be 'L' or 'U'"),
    ],
)
def test_what_cannot_be_done_is_said(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (4, 3), (2, 5, 2), (3, 4), (2, 2, 4)])
def test_lu_has_first_and_second_derivatives(shape, static):
    matrix, weights = R.normal(size=shape), paddle.to_tensor(R.normal(size=shape))

    def loss(x):
        packed, _ = linalg.lu(x)
        return (packed * packed * weights).sum() + packed.sin().sum()

    def slope(matrix, run=loss):
        x = paddle.to_tensor(matrix, stop_gradient=False)
        (g,) = paddle.grad([run(x)], [x], create_graph=True)
        return g, paddle.grad([(g * g).sum()], [x])[0]

    way, h = R.normal(size=shape), 1e-6
    first, second = slope(matrix, paddle.jit.to_static(loss, full_graph=True) if static else loss)
    high, low = (loss(paddle.to_tensor(matrix + s * way)).item() for s in (h, -h))
    np.testing.assert_allclose((first.numpy() * way).sum(), (high - low) / (2 * h), rtol=1e-5)
    high, low = ((slope(matrix + s * way)[0].numpy() ** 2).sum() for s in (h, -h))
    np.testing.assert_allclose((second.numpy() * way).sum(), (high - low) / (2 * h), rtol=1e-5)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("matrix", [TALL, WIDE, A, np.stack([TALL, TALL[::-1]])])
def test_complete_qr_has_a_square_factor(matrix, static):
    run = paddle.jit.to_static(lambda x: linalg.qr(x, "complete"), full_graph=True) if static else linalg.qr
    q, r = (t.numpy() for t in (run(paddle.to_tensor(matrix)) if static else run(paddle.to_tensor(matrix), "complete")))
    rows = matrix.shape[-2]
    assert q.shape[-2:] == (rows, rows)
    np.testing.assert_allclose(q.swapaxes(-1, -2) @ q, np.broadcast_to(np.eye(rows), q.shape), atol=1e-12)
    np.testing.assert_allclose(q @ r, matrix, atol=1e-12)
    np.testing.assert_allclose(r, np.linalg.qr(matrix, "complete")[1], atol=1e-12)


def test_complete_qr_has_a_derivative_where_it_is_determined():
    for matrix in (A, WIDE[:, :3]):
        x = paddle.to_tensor(matrix, stop_gradient=False)
        grads = [paddle.grad([linalg.qr(x, mode)[1].sin().sum()], [x])[0].numpy() for mode in ("complete", "reduced")]
        np.testing.assert_allclose(*grads)
    with pytest.raises(AutodiffError, match="mode 'complete' of matrices with more rows than columns"):
        linalg.qr(paddle.to_tensor(TALL, stop_gradient=False), mode="complete")


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", ["solve", "inv", "det"])
def test_complex_matrices(name, static):
    """The derivative by a complex number is that by its real part, plus i times that by its imaginary part."""
    operands = [A + 1j * A[::-1] ** 2] + ([Y + 2j * Y[::-1]] if name == "solve" else [])
    ours, numpys = getattr(linalg, name), getattr(np.linalg, name)

    def loss(*xs):
        out = ours(*xs)
        return (out.abs() ** 2).sum() + 2 * out.real().sum() - out.imag().sum()

    xs = [paddle.to_tensor(o, stop_gradient=False) for o in operands]
    np.testing.assert_allclose(ours(*xs).numpy(), numpys(*operands), rtol=1e-10)
    found = paddle.grad([(paddle.jit.to_static(loss, full_graph=True) if static else loss)(*xs)], xs)

    def difference(i, way):
        values = []
        for h in (1e-6, -1e-6):
            out = numpys(*[o + h * way if i == j else o for j, o in enumerate(operands)])
            values.append((np.abs(out) ** 2).sum() + 2 * out.real.sum() - out.imag.sum())
        return (values[0] - values[1]) / 2e-6

    for i, (g, o) in enumerate(zip(found, operands, strict=True)):
        way = R.normal(size=o.shape) + 1j * R.normal(size=o.shape)
        np.testing.assert_allclose((g.numpy().conj() * way).real.sum(), difference(i, way), rtol=1e-5)


def test_general_eigenvalues_have_no_derivative():
    x = paddle.to_tensor(A, stop_gradient=False)
    with pytest.raises(AutodiffError, match="eig has no derivative here"):
        linalg.eig(x)
    with paddle.no_grad():
        assert linalg.eig(x)[0].shape == [2, 3]


@pytest.mark.on_host("CuPy raises no LinAlgError")
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("size", [1, 3, 33])
@pytest.mark.parametrize("static", [False, True])
def test_elements_that_are_not_finite_come_back_at_once(value: float, size: int, static: bool) -> None:
    a = np.random.default_rng(0).normal(size=(2, size, size))
    a[1, 0, 0] = value
    svd = paddle.jit.to_static(paddle.linalg.svd) if static else paddle.linalg.svd
    det = paddle.jit.to_static(paddle.linalg.det) if static else paddle.linalg.det
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="did not converge"):
            svd(paddle.to_tensor(a))
        x = paddle.to_tensor(a, stop_gradient=False)
        det(x).sum().backward()
        np.testing.assert_allclose(x.grad.numpy()[0], np.linalg.det(a[0]) * np.linalg.inv(a[0]).T)
        assert size == 1 or not np.isfinite(x.grad.numpy()[1]).all()
