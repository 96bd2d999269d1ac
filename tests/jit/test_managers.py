"""`with` in a Program: what is refused, with its text."""

import contextlib

import pytest

import dy2st as paddle
from dy2st.errors import StructureError

T = paddle.to_tensor


@contextlib.contextmanager
def generated():
    try:
        yield
    finally:
        print("left")


def test_an_exception_of_the_run_does_not_leave_a_generated_manager() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(t):
        with generated():
            if t > 1:
                raise ValueError("large")
        return t

    with pytest.raises(StructureError, match="leaves this `with`, whose manager would have to see it"):
        function(T(2.0))


def test_an_exception_of_every_path_does_not_leave_a_generated_manager() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(t):
        with generated():
            if t > 1:
                raise ValueError("large")
            else:
                raise ValueError("small")

    with pytest.raises(StructureError, match="leaves this `with`, whose manager would have to see it"):
        function(T(2.0))


class Undecided:
    """Ends an exception where a tensor says so."""

    def __init__(self, t):
        self.t = t

    def __enter__(self):
        return self

    def __exit__(self, kind, error, traceback):
        return self.t > 0


def test_only_python_says_whether_a_manager_ends_an_exception() -> None:
    @paddle.jit.to_static(full_graph=True)
    def function(t):
        with Undecided(t):
            if t > 1:
                raise ValueError("large")
        return t

    with pytest.raises(StructureError, match="let `__exit__` return a Python bool"):
        function(T(2.0))


def test_a_manager_that_ends_an_index_error_sees_that_of_an_operation() -> None:
    def function(x, i):
        y = x * 1.0
        with contextlib.suppress(IndexError):
            y = x[i]
        return y

    static = paddle.jit.to_static(function, full_graph=True)
    for i in (0, 5):
        assert static(T([1.0, 2.0]), T(i)).tolist() == function(T([1.0, 2.0]), T(i)).tolist()
