"""Loops: while, for over range, tensors and Python's containers; state that changes."""

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s

ROWS = f([[1, 1], [2, 2], [3, 3]])


@case(s(2), s(100), s(1.5), holds="while_loop")
def while_squares(v):
    while v < 8:
        v = v**2
    return v


@case((POS, n(3)), (POS, n(0)), (POS, n(7)), holds=("counted_while",))
def for_range_tensor(x, k):
    for i in range(k):
        x = x * 2 + i
    return x


@case((POS, n(2), n(9), n(3)), (POS, n(9), n(2), n(-2)), (POS, n(3), n(3), n(1)), holds="counted_while")
def for_range_start_stop_step(x, a, b, c):
    for i in range(a, b, c):
        x = x * 1.5 + i
    return x


@case(ROWS, f([[4, 5]]), holds="counted_while")
def for_rows(x):
    total = paddle.zeros([2])
    for row in x:
        total = total + row * row
    return total


@case(ROWS, f([[4, 5]]), paddle.zeros([0, 2]).numpy(), holds="counted_while")
def total_starts_as_python_zero(x):
    total = 0
    for row in x:
        total = total + row.sum()
    return total


@case(ROWS, f([[4, 5]]), holds="counted_while")
def total_starts_as_none(x):
    loss = None
    for row in x:
        y = row.sum() * 2
        if loss is None:
            loss = y
        else:
            loss = loss + y
    return loss


@case(ROWS, holds="counted_while")
def float_accumulator(x):
    total = 0.0
    for row in x:
        total += row.sum()
    return total / x.shape[0]


@case(n(5), n(1), holds="counted_while")
def python_counter(k):
    count = 0
    for _ in range(k):
        count += 1
    return count


@case(POS, NEG)
def for_range_python(x):
    for i in range(3):
        x = x + i
    return x


@case(POS, holds="counted_while")
def long_range_is_rolled(x):
    for i in range(3000):
        x = x * 0.999 + 0.001 * i
    return x


@case(POS)
def for_list_of_floats(x):
    for k in [1.0, 2.0, 3.0]:
        x = x * k
    return x


@case(POS)
def for_dict_items(x):
    out = {}
    for name, k in {"a": 1, "b": 2}.items():
        out[name] = x * k
    return out


@case(POS)
def for_zip_and_enumerate(x):
    for i, (a, b) in enumerate(zip([1, 2, 3], (4, 5, 6))):
        x = x + i * a - b
    return x


@case(ROWS, f([[1, 2]]), holds="counted_while")
def enumerate_tensor(x):
    total = paddle.zeros([2])
    for i, row in enumerate(x):
        total = total + i * row
    return total


@case((ROWS, ROWS * 2), (ROWS, ROWS[:2]), holds="counted_while")
def zip_tensors(x, y):
    total = paddle.zeros([2])
    for a, b in zip(x, y):
        total = total + a * b
    return total


@case(ROWS, holds="counted_while")
def reversed_tensor(x):
    y = paddle.zeros([2])
    for row in reversed(x):
        y = y * 0.5 + row
    return y


@case((n(3), n(4)), (n(0), n(2)), (n(2), n(0)), holds="counted_while")
def nested_loops(a, b):
    total = paddle.zeros([], "int64")
    for i in range(a):
        for j in range(b):
            total = total + i * j
    return total


@case((POS, n(3)), (POS, n(1)), holds="counted_while")
def variable_alive_after_loop(x, k):
    for i in range(k):
        y = x * i
    return y, i


@case((POS, n(2)), (POS, n(0)), holds="counted_while")
def variable_unset_after_zero_turns(x, k):
    for i in range(k):
        y = x * i
    return y


@case((POS, n(2)), (POS, n(0)), holds="counted_while")
def extent_grows(x, k):
    for _ in range(k):
        x = paddle.concat([x, x])
    return x


@case((POS, n(2)), (POS, n(0)), (POS, n(1)), holds="counted_while")
def dtype_changes(x, k):
    for _ in range(k):
        x = x.astype("float64") * 2
    return x


@case((POS, n(2)), (POS, n(0)), holds="counted_while")
def rank_changes_once(x, k):
    for _ in range(k):
        x = x.reshape([-1, 1])
    return x


@case((POS, n(3)), (POS, n(0)), holds="counted_while")
def tuple_state(x, k):
    state = (x, x * 2)
    for _ in range(k):
        state = (state[1], state[0] + state[1])
    return state


@case((POS, n(4)), (POS, n(0)), holds="counted_while")
def starred_targets(x, k):
    a, *rest = x, x + 1, x + 2
    for _ in range(k):
        a, *rest = [*rest, a]
    return a, rest


@case((f([[1, 2, 3], [4, 5, 6]]),), holds="counted_while")
def unpack_rows(x):
    total = 0.0
    for a, b, c in x:
        total = total + a * b - c
    return total


@case((POS, 3), (POS, 4), (POS, 5), programs=2, holds="counted_while")
def python_bound_opens(x, k):
    for i in range(k * 10):
        x = x * 0.9
    return x


@case((s(10), 3), (s(10), 4), programs=2, holds="while_loop")
def condition_python_then_tensor(x, k):
    go = k > 0
    while go:
        x = x - k
        go = x > 0
    return x


@case(s(3), s(30), holds="while_loop")
def while_with_and(x):
    i = 0
    while i < 5 and x > 1:
        x = x / 2
        i += 1
    return x, i


@case((ROWS, n(1)), (ROWS, n(2)), holds="counted_while")
def loop_over_slice(x, k):
    total = paddle.zeros([2])
    for row in x[k:]:
        total = total + row
    return total


@case(f(1, 2, 3, 4, 5, 6), f(1, 2), holds="counted_while")
def range_over_shape(x):
    total = paddle.zeros([])
    for i in range(x.shape[0]):
        total = total + x[i] * i
    return total


@case(f(1, 2, 3, 4, 5, 6), holds="counted_while")
def range_over_len(x):
    out = []
    for i in range(len(x)):
        out.append(x[i] * i)
    return paddle.stack(out)


@case((POS, n(2)), (POS, n(5)), holds="counted_while")
def fibonacci(x, k):
    a, b = 0, 1
    for _ in range(k):
        a, b = b, a + b
    return x * a, b


@case((f(3, -1, 4, -5), s(0)), holds="counted_while")
def condition_in_loop_with_none(x, z):
    best = None
    for v in x:
        if best is None or v > best:
            best = v
    return best


@case((POS, n(3)), (POS, n(0)), holds="counted_while")
def nested_function_in_loop(x, k):
    for i in range(k):

        def g(v):
            return v * 2 + i

        x = g(x)
    return x


@case((POS, n(3)), holds="counted_while")
def string_state(x, k):
    name = "start"
    for _ in range(k):
        x = x + 1
        name = "done"
    return x, name


@case(POS, NEG)
def python_list_index_unrolls(x):
    scales = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    for i in range(6):
        x = x * scales[i]
    return x


@case((POS,), (NEG,), holds="cond")
def over_one_of_two_things(x):
    items = [x, x * 2, x * 3] if x.sum() > 0 else (x * 5,)
    total, count = x * 0, 0
    for v in items:
        total = total * 0.5 + v
        count += 1
        if total.sum() > 20:
            break
    return total, count


@case((POS,), (NEG,))
def over_nothing_or_something(x):
    found = None
    if x.sum() > 0:
        found = x
    total = x.sum() * 0
    if found is not None:
        for v in found:
            total = total * 0.5 + v
    for v in found if found is not None else "ab":
        total = total + (1 if v == "a" else 2)
    return total
