"""Exceptions: raise, assert, try, with; and that eager and static raise the same."""

import contextlib
import warnings

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s


class Custom(ValueError):
    pass


class Manager:
    def __enter__(self):
        print("enter")
        return self

    def __exit__(self, *what):
        print("exit")
        return False


@case(POS, NEG, holds="cond")
def raise_in_branch(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@case(POS, NEG, holds="cond")
def raise_with_value_in_text(x):
    if x.sum() < 0:
        raise ValueError(f"sum is {x.sum().item()}")
    return x * 2


@case(POS, NEG, holds="cond")
def raise_custom(x):
    if x.sum() < 0:
        raise Custom("mine")
    return x * 2


@case(POS, NEG, f(0, 0), holds="cond")
def raise_in_else(x):
    if x.sum() > 0:
        y = x
    elif x.sum() < 0:
        y = -x
    else:
        raise ZeroDivisionError("zero")
    return y


@case((POS, n(2)), (POS, n(5)), holds="counted_while")
def raise_in_loop(x, k):
    for i in range(k):
        if i > 3:
            raise IndexError("too far")
        x = x * 2
    return x


@case(POS, NEG, holds="assert")
def assert_tensor(x):
    assert x.sum() > 0, "must be positive"
    return x * 2


@case(POS, NEG, holds="assert")
def assert_without_message(x):
    assert (x > 0).all()
    return x * 2


@case((POS, 1), (POS, 0), programs=2)  # a number that changes becomes an input
def python_raise(x, k):
    if k == 0:
        raise KeyError("k")
    return x


@case(POS, NEG, holds="cond")
def try_finally_around_branch(x):
    try:
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    finally:
        print("done")
    return y


@case(POS, NEG, holds="cond")
def try_except_python_error(x):
    try:
        y = {}["missing"]
    except KeyError:
        y = x * 2
    else:
        y = x
    return y if x.sum() > 0 else x


@case(POS, NEG, holds="cond")
def try_except_of_tensor_error(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 2
    except ValueError:
        y = x * 100
    return y


@case(POS, NEG, holds="cond")
def return_in_try_finally(x):
    try:
        if x.sum() > 0:
            return x * 2
    finally:
        print("cleanup")
    return x


@case(POS, NEG, holds="cond")
def with_no_grad(x):
    with paddle.no_grad():
        y = x * 2
    if x.sum() > 0:
        y = y + x
    return y


@case(POS, NEG, holds="cond")
def with_user_manager(x):
    with Manager() as m:
        if x.sum() > 0:
            x = x * 2
    return x


@case(POS, NEG, holds="cond")
def with_contextlib(x):
    with contextlib.nullcontext(3) as k:
        y = x * k if x.sum() > 0 else x
    with contextlib.suppress(KeyError):
        y = y + {}["no"]
    return y


@case((f([[1, 2]]),), (f([[-1, 2]]),), holds=())
def shape_error_when_traced(x):
    return paddle.matmul(x, paddle.ones([7, 7]))


@case((f(1, 2), f(1, 2)), (f(1, 2), f(1, 2, 3)), same_message=False)
def shape_error_when_run(x, y):
    return x + y


@case((f(1, 2, 3), n(1)), (f(1, 2, 3), n(9)), same_message=False)
def index_error_when_run(x, k):
    return x[k]


@case(POS)
def unbound_in_python(x):
    if False:
        y = x
    return y


@case((POS, n(0)), (POS, n(2)), holds="cond", same_message=False)
def integer_division_by_zero(x, k):
    if k > 1:
        return x * (6 // int(k))
    return x * (6 % int(k))


@case(POS, NEG, holds="cond")
def raise_from(x):
    if x.sum() < 0:
        raise RuntimeError("outer") from ValueError("inner")
    return x


@case(POS, NEG, holds="cond")
def raise_class_without_text(x):
    if x.sum() < 0:
        raise NotImplementedError
    return x


@case((s(1), s(2)), (s(1), s(-2)), (s(-1), s(2)), holds="cond")
def return_or_raise_nested(a, b):
    if a > 0:
        if b > 0:
            return a
        raise ValueError("b")
    raise TypeError("a")


@case(POS, NEG, holds="cond")
def warn_in_function(x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x * 2
    return y if x.sum() > 0 else x


class Detailed(Exception):
    def __init__(self, code, value):
        super().__init__(code, value)
        self.code = code

    def __str__(self):
        return f"code {self.code}"


@case(POS, NEG, holds="cond")
def raise_custom_with_arguments(x):
    if x.sum() < 0:
        raise Detailed(7, "why")
    return x


@case(POS, NEG, holds="cond")
def raise_in_called_function(x):
    def checked(v):
        if v.sum() < 0:
            raise Custom("below")
        return v * 2

    return checked(x) + 1


@case(POS, NEG, holds="cond")
def python_error_in_branch(x):
    if x.sum() < 0:
        return {}["missing"]
    return x


@case(POS, NEG, holds=())
def generator_context_manager(x):
    @contextlib.contextmanager
    def noisy(name):
        print("in", name)
        yield 2
        print("out", name)

    with noisy("a") as k:
        return x * k if x.sum() > 0 else x


@case(POS, holds=())
def prints_then_raises(x):
    print("first", x.sum())
    raise ValueError(f"last {x.sum().item()}")
