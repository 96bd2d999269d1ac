"""Functions: nested calls, closures, decorators, partial, generators, recursion, methods, foreign calls."""

import functools

import numpy as np

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s


def helper(x, k=2, *more, bias=0.0, **words):
    if x.sum() > 0:
        return x * k + bias
    return x - k + sum(more) + words.get("extra", 0)


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args, **keywords):
        return function(*args, **keywords) * 10

    return wrapper


@decorated
def times(x, k):
    return x * k if x.sum() > 0 else x


@functools.lru_cache
def scale_for(k):
    return k * 2.5


class Scaler:
    factor = 3

    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k if x.sum() > 0 else x

    @staticmethod
    def double(x):
        return x * 2 if x.sum() > 0 else x

    @classmethod
    def make(cls, x):
        return x * cls.factor

    @property
    def half(self):
        return self.k / 2


class Child(Scaler):
    def __call__(self, x):
        return super().__call__(x) + 1


@case(POS, NEG, holds="cond")
def nested_call(x):
    return helper(x) + helper(x, 3, bias=1.0)


@case(POS, NEG, holds="cond")
def star_arguments(x):
    args, words = (4, 1, 2), {"bias": 0.5, "extra": 7}
    return helper(x, *args, **words)


@case(POS, NEG, holds="cond")
def closure_reads(x):
    k = 5

    def g(v):
        return v * k if v.sum() > 0 else v

    k = 6
    return g(x)


@case(POS, NEG, holds="cond")
def closure_rebinding(x):
    count = 0

    def g(v):
        nonlocal count
        if v.sum() > 0:
            count += 1
        return v * 2

    return g(x) + g(x), count


@case(POS, NEG, holds="cond")
def lambdas(x):
    g = lambda v, k=3: v * k if v.sum() > 0 else v
    return g(x) + g(x, k=2)


@case(POS, NEG, holds="cond")
def partial(x):
    g = functools.partial(helper, k=7, bias=1.0)
    return g(x)


@case(POS, NEG, holds="cond")
def decorator_with_wraps(x):
    return times(x, 2)


@case(POS)
def lru_cache(x):
    return x * scale_for(2) + scale_for(2)


@case(POS, NEG)
def lru_cache_of_objects_with_tensors(x):
    @functools.lru_cache
    def doubled(box):
        return box.value * 2

    class Box:
        def __init__(self, value):
            self.value = value

    box = Box(x)
    return doubled(box) + doubled(box) + doubled(Box(x + 1))


@case(POS, NEG, holds="cond")
def callable_object_and_super(x):
    return Scaler(2)(x) + Child(3)(x)


@case(POS, NEG, holds="cond")
def static_class_and_property(x):
    scaler = Scaler(4)
    return Scaler.double(x) + scaler.double(x) + Scaler.make(x) + scaler.make(x) * scaler.half


@case(POS, NEG, holds="cond")
def generator_function(x):
    def parts(v):
        yield v
        yield v * 2
        yield v * 3

    total = x * 0
    for part in parts(x):
        if part.sum() > 0:
            total = total + part
    return total


@case(POS)
def generator_expression(x):
    return sum(x * k for k in [1, 2, 3]), list(x + k for k in (1, 2))


@case(
    (s(3), 4),
)
def recursion_on_python_number(x, depth):
    def power(v, d):
        return v if d == 0 else v * power(v, d - 1)

    return power(x, depth)


@case(POS, NEG, holds="cond")
def mutual_python_recursion(x):
    def even(v, k):
        return v if k == 0 else odd(v * 2, k - 1)

    def odd(v, k):
        if v.sum() > 0:
            v = v + 1
        return even(v, k - 1)

    return even(x, 4)


@case(POS, NEG, holds="cond")
def keyword_only_and_defaults(x):
    def g(v, /, a=1, *, b=2):
        return v * a + b if v.sum() > 0 else v - b

    return g(x) + g(x, 3, b=4)


@case(POS)
def functions_in_containers(x):
    table = {"double": lambda v: v * 2, "square": lambda v: v * v}
    out = x
    for name in ["double", "square"]:
        out = table[name](out)
    return out


@case(POS, NEG, holds="cond")
def inner_class(x):
    class Net:
        def __init__(self, k):
            self.k = k

        def run(self, v):
            if v.sum() > 0:
                return v * self.k
            return v

    return Net(4).run(x)


@case(POS)
def numpy_of_constants(x):
    table = np.arange(6).reshape(2, 3)
    return x * float(np.sqrt(table[1, 1])) + table.shape[1]


@case(f([[1, 2], [3, 4]]), f([[1, 2, 3]]))
def shape_arithmetic(x):
    rows, columns = x.shape
    y = x.reshape([rows * columns])
    z = paddle.zeros([rows, columns + 1])
    return y, z, rows * 2 + columns // 2, x.shape[-1] / 2, x.size, x.ndim


@case(f(1, 2, 3), f(4, 5))
def item_and_float(x):
    total = x.sum().item()
    return x * total, total, float(x.max()) + 1


@case(f(1, 2, 3), f(4, 5))
def f_string_in_print(x):
    print(f"sum {x.sum()} rows {len(x)} max {float(x.max()):.2f} {'text':>6}", x.shape[0], sep="|")
    return x


@case(POS, NEG, holds="cond")
def prints_in_branches(x):
    print("before", x)
    if x.sum() > 0:
        print("positive", x.sum())
    else:
        print("negative")
    print("after")
    return x


@case(n(3), n(1), holds="counted_while")
def prints_in_loop(k):
    for i in range(k):
        print("turn", i, i * 2.5)
    return k


@case(POS, NEG, holds="cond")
def random_in_branch(x):
    paddle.seed(7)
    if x.sum() > 0:
        y = x + paddle.rand([2])
    else:
        y = x
    return y + paddle.randn([2])


@case(POS, NEG)
def random_before_and_after_a_seed(x):
    before = paddle.rand([2]) + paddle.rand([2])
    paddle.seed(7)
    return x + before, paddle.rand([2])


@case((POS, n(3)), (POS, n(0)), holds="counted_while")
def random_in_loop(x, k):
    for _ in range(k):
        x = x + paddle.uniform([2])
    return x + paddle.uniform([2])


@case(f([[1, 2], [3, 4]]))
def slices_with_symbolic_ends(x):
    k = x.shape[0] - 1
    return x[:k], x[k:], x[-1:k], x[0 : x.shape[1], ::1]


@case(f(1, 2, 3, 4), f(1, 2))
def arange_and_full(x):
    i = paddle.arange(len(x))
    return x * i, paddle.full([len(x), 2], 3.0), paddle.ones(x.shape)


@case(f(1, 2, 3, 4), f(1, 2), holds="cond")
def length_condition(x):
    k = 1 if len(x) % 4 == 0 else 2
    return x * k, k


@case(POS, NEG)
def dtype_and_name_reads(x):
    if x.dtype == paddle.float32:
        y = x * 2
    else:
        y = x
    return y, str(x.dtype), x.ndim == 1, isinstance(x, paddle.Tensor), type(x) is paddle.Tensor


@case(POS, NEG, holds="cond")
def getattr_hasattr(x):
    y = x.sum()
    return y if hasattr(x, "mean") and y > 0 else getattr(x, "missing", y * 2)


@case((n(5),), (n(0),), holds=())
def recursion_on_tensor(k):
    def factorial(v):
        if v <= 1:
            return paddle.ones([], "int64")
        return v * factorial(v - 1)

    return factorial(k)


@case((n(7),), (n(1),), holds="call")
def double_recursion(k):
    def fibonacci(v):
        if v < 2:
            return v
        return fibonacci(v - 1) + fibonacci(v - 2)

    return fibonacci(k)


@case((n(5),), (n(1),), holds="call")
def two_recursions_on_values_of_one_kind(k):
    def double(v):
        return v if v < 1 else 2 + double(v - 1)

    def triple(v):
        return v if v < 1 else 3 + triple(v - 1)

    return double(k), triple(k)


@case((POS, n(4)), (NEG, n(1)), holds="call")
def recursion_on_a_captured_tensor_also_in_a_branch(x, k):
    def power(v):
        return x if v < 1 else x * power(v - 1)

    y = power(k)
    if k > 2:
        y = y + power(k - 2)
    return y


@case(POS, NEG, holds="call")
def recursion_on_a_number_beside_one_that_stays(x):
    def grow(v, turns, axis):
        if v.sum() < 100 and turns < 5:
            return grow(paddle.concat([v, v], axis=axis), turns + 1, axis)
        return v * turns

    return grow(x, 0, 0)


@case(POS, NEG)
def walrus_in_a_ternary_of_a_lambda(x):
    pick = lambda v, keep: (w := v * 2) + w if keep else v
    return pick(x, True), pick(x, False), [(w := v * 2) + w if v > 1 else v for v in (1, 2)], w


@case((n(20), n(6)), (n(7), n(7)), holds="call")
def recursion_with_two_arguments(a, b):
    def divisor(p, q):
        return p if q == 0 else divisor(q, p % q)

    return divisor(a, b)


@case(POS, NEG, holds="cond")
def constructor_with_control_flow(x):
    class Chooser:
        def __init__(self, v):
            if v.sum() > 0:
                self.factor = v * 2
            else:
                self.factor = v - 1

    return Chooser(x).factor


@case((POS, n(0)), (POS, n(3)), (NEG, n(3)), holds="cond")
def functions_made_in_turns(x, count):
    act = None
    for i in range(count):
        if x.sum() > i:

            def act(v):
                return v + i
        else:
            scale = x * 2
            act = lambda v: v * scale
        x = act(x)
    return x if act is None else act(x)


@case((POS, n(0)), (POS, n(3)), (NEG, n(3)), holds="cond")
def functions_in_an_open_list(x, count):
    steps = []
    for i in range(count):
        if x.sum() > i:
            steps.append(lambda v: v * 2)
        else:
            steps.append(abs)
    for step in steps:
        x = step(x)
    return x
