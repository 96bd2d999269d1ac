"""Exceptions that hold what only the run will tell, in their arguments, attributes and cause, leave with its values."""

import pytest

import dy2st as paddle


class Stop(Exception):
    pass


class Kept(Stop):
    def __init__(self, value, others):
        super().__init__("kept")
        self.value, self.others = value, others


class Point:
    def __init__(self, v):
        self.v = v


def one_of_several(x, log):
    s = x * 1.0
    if x.sum() > 0:
        s = None
    raise Stop("stop", s)


def after_a_write(x, log):
    log.append(1)
    s = x * 1.0
    if x.sum() > 0:
        s = len
    raise Stop("stop", s)


def containers(x, log):
    made = [x * 3]
    if x.sum() > 0:
        raise Stop(made, {"k": x * 2}, (x, 1), Point(x * 5))
    return x


def attributes(x, log):
    if x.sum() > 0:
        raise Kept(x * 2, [x * 1.0, 3])
    return x


def a_cause(x, log):
    if x.sum() > 0:
        raise Stop("outer") from Kept(x * 2, ())
    return x


def attributes_for_a_handler(x, log):
    try:
        if x.sum() > 0:
            raise Kept(x * 2, x)
        log.append(2)
    except Kept as error:
        return error.value + error.others
    return x


def raised_again(x, log):
    try:
        log.append(3)
        if x.sum() > 0:
            raise Kept(x * 2, 1)
    except Kept as error:
        raise Stop(error.value, [error.others]) from error
    return x


def shown(x):
    if isinstance(x, paddle.Tensor):
        return x.numpy().tolist()
    if isinstance(x, BaseException):
        return type(x).__name__, shown(x.args), shown(vars(x)), shown(x.__cause__)
    if isinstance(x, Point):
        return "Point", shown(x.v)
    if isinstance(x, dict):
        return {k: shown(v) for k, v in x.items()}
    return [shown(i) for i in x] if isinstance(x, (list, tuple)) else x


def outcome(function, values):
    log = []
    try:
        found = function(paddle.to_tensor(values), log)
    except Stop as error:
        found = error
    return shown(found), log


@pytest.mark.parametrize("function", [
    one_of_several, after_a_write, containers, attributes, a_cause, attributes_for_a_handler, raised_again,
])  # fmt: skip
def test_an_exception_has_the_values_of_the_run(function):
    static = paddle.jit.to_static(function)
    for values in ([1.0, 2.0], [-1.0, -3.0, 2.0], [3.0], [1.0, 2.0], [-1.0, -2.0]):
        assert outcome(static, values) == outcome(function, values)


def tensors_in(x):
    if isinstance(x, paddle.Tensor):
        return [x]
    if isinstance(x, BaseException):
        return tensors_in([x.args, vars(x), x.__cause__])
    if isinstance(x, Point):
        return tensors_in(x.v)
    if isinstance(x, dict):
        return tensors_in([*x.values()])
    return [t for i in x for t in tensors_in(i)] if isinstance(x, (list, tuple)) else []


def gradient(function, values):
    x = paddle.to_tensor(values, stop_gradient=False)
    try:
        found = function(x, [])
    except Stop as error:
        found = error
    stops = [t.stop_gradient for t in tensors_in(found)]
    for t in tensors_in(found):
        t.sum().backward(retain_graph=True)
    return stops, None if x.grad is None else x.grad.tolist()


@pytest.mark.filterwarnings("ignore::dy2st.jit.static_function.FallbackWarning")
@pytest.mark.parametrize("function", [
    one_of_several, after_a_write, containers, attributes, a_cause, attributes_for_a_handler, raised_again,
])  # fmt: skip
def test_tensors_of_an_exception_have_their_gradients(function):
    static = paddle.jit.to_static(function)
    for values in ([1.0, 2.0], [-1.0, -3.0, 2.0], [3.0], [1.0, 2.0], [-1.0, -2.0]):
        assert gradient(static, values) == gradient(function, values)
