"""Early return anywhere; and, or, not, comparison, built-in functions on tensors."""

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s

ROWS = f([[1, 1], [2, 2], [3, 3]])


@case(POS, NEG, holds="cond")
def early_return(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@case((ROWS, s(1)), (ROWS, s(3)), (ROWS, s(100)), holds="while_loop")
def return_in_loop_over_tensor(xs, limit):
    for row in xs:
        if row.sum() > limit:
            return row * 10
    return xs[0]


@case((s(1), s(10)), (s(1), s(5)), holds="while_loop")
def return_in_while(v, limit):
    while v < 8:
        v = v * 2
        if v > limit:
            return v, "left"
    return v, "ran out"


@case(POS, NEG, holds="cond")
def return_none(x):
    if x.sum() > 0:
        return x
    return None


@case(POS, NEG, holds="cond")
def return_nothing(x):
    if x.sum() > 0:
        return x * 2


@case(POS, NEG, f(0, 0), holds="cond")
def return_different_structures(x):
    if x.sum() > 0:
        return x, x * 2
    if x.sum() < 0:
        return [x]
    return {"zero": x}


@case(POS, NEG, holds="cond")
def return_python_values_beside(x):
    if x.sum() > 0:
        return x, 1, "yes", None
    return x, 2, "no", 3.5


@case((n(3), n(1)), (n(3), n(9)), holds="while_loop")
def return_from_nested_loops(a, b):
    for i in range(a):
        for j in range(a):
            if i + j > b:
                return i * 10 + j
    return -1


@case(POS, NEG, holds="cond")
def return_the_argument(x):
    if x.sum() > 0:
        return x
    return x


@case(POS)
def return_same_tensor_twice(x):
    y = x * 2
    return y, y, [y]


@case((s(1), s(2)), (s(-1), s(2)), (s(1), s(-2)), holds="cond")
def and_of_tensors(a, b):
    if a > 0 and b > 0:
        return a + b
    return a - b


@case((s(1), s(2)), (s(-1), s(2)), (s(-1), s(-2)), holds="cond")
def or_of_tensors(a, b):
    if a > 0 or b > 0:
        return a + b
    return a - b


@case(s(1), s(-1), holds="scalar_not")
def not_of_tensor(a):
    flag = not a > 0
    return flag


@case((s(3), s(4)), (s(0), s(4)), (s(0), s(0)), holds="cond")
def value_of_or(a, b):
    return a or b


@case((s(3), s(4)), (s(0), s(4)), holds="cond")
def value_of_and(a, b):
    return a and b


@case((s(3), None), (s(3), s(4)), programs=2)
def value_or_default(a, b):
    b = b or a * 2
    return b


@case(s(1), s(5), s(-1), holds="cond")
def chained_comparison(a):
    if 0 < a <= 3:
        return a * 2
    return a


@case((f(1, 2, 3), s(2)), (f(1, 2, 3), s(7)))
def value_in_tensor(x, v):
    return v in x


@case((s(2), s(1)), (s(7), s(1)), holds="cond")
def value_in_tuple(v, one):
    if v in (one, 2.0, 3.0):
        return v * 2
    return v


@case(POS, NEG, holds="cond")
def short_circuit_skips_effects(x):
    def loud(v):
        print("loud")
        return v > 1

    if x.sum() > 0 and loud(x.max()):
        return x * 2
    return x


@case(f(1, 2, 3), f(-3, -2))
def min_max_sum_abs(x):
    return min(x), max(x), sum(x), abs(x), max(x.sum(), x.mean()), min(x[0], 1.0)


@case((s(1), s(2)), (s(1), s(-2)), holds="cond")
def any_all(a, b):
    return any([a > 0, b > 0]), all([a > 0, b > 0]), any((a < 0, False))


@case(s(2.7), s(-2.7))
def int_float_bool(a):
    return int(a), float(a), bool(a), int(a) + 1, float(a) * 2


@case(s(2.5), s(-3.7))
def round_of_number(a):
    return round(float(a)), round(float(a), 1)


@case(f(1, 2, 3), f(4, 5))
def len_of_tensor(x):
    return len(x), len(x) + 1, x * len(x)


@case(POS, NEG, holds="cond")
def walrus(x):
    if (total := x.sum()) > 0:
        return x * total
    return x - total


@case(POS)
def map_filter_sorted(x):
    scaled = list(map(lambda k: x * k, [1, 2, 3]))
    kept = list(filter(lambda k: k > 1, [1, 2, 3]))
    return scaled, kept, sorted([3, 1, 2], reverse=True)


@case((s(1), s(2), s(0)), (s(0), s(0), s(5)), (s(0), s(0), s(0)), holds="cond")
def mixed_logic(a, b, c):
    return (a and b) or c


@case(POS, NEG, holds="cond")
def not_in_condition(x):
    if not (x.sum() > 0) and not False:
        return x * 2
    return x


@case(s(1), s(-1), holds="cond")
def is_none_of_tensor(a):
    b = a if a > 0 else None
    return b is None, a is None, b is not None


@case(f(1, 2, 3), holds=())
def any_all_of_tensor(x):
    return any(x > 2), all(x > 0), all(x > 1)


@case((s(3), s(1)), (s(1), s(3)))
def python_min_of_two(a, b):
    return min(a, b) * 2, max(a, b, 2.0)


@case((f(1, 2), f(1, 2)), (f(1, 2), f(1, 3)))
def equality(x, y):
    if (x == y).all():
        return x * 2
    return y


@case(s(5), s(-5))
def unary_and_ternary_in_argument(a):
    return paddle.abs(a if a > 0 else -a * 2) + (1 if a > 0 else 2)


@case(POS, NEG)
def return_in_finally_by_a_tensor(x):
    try:
        return x * 5
    finally:
        if x.sum() > 0:
            return x + 1
        return x - 1


@case(POS, NEG)
def return_in_finally_forgets_what_was_raised(x):
    try:
        if x.sum() > 0:
            raise ValueError("forgotten")
        x = x * 2
    finally:
        x = x + 1
        return x


@case(POS, NEG, f(3, 4))
def return_in_finally_inside_of_a_loop(x):
    for i in range(3):
        try:
            if x.sum() > i:
                return x
            x = x + 1
        except ValueError:
            return x * 7
        else:
            x = x + 10
        finally:
            if x.sum() > 2:
                return x * 100
            return -x
    return x


@case(POS, NEG, f(9, 9))
def return_in_finally_around_loops_and_handlers(x):
    y = x.sum()
    while y < 10:
        try:
            for k in range(3):
                y = y + k
                if y > 8:
                    return y
        finally:
            try:
                if y > 5:
                    raise KeyError("k")
            except KeyError:
                return y * 3
            return y
    return x


@case((POS, POS), (POS, f(1.0, 2.0, 3.0, 4.0)), (NEG, NEG), holds="scalar_eq")
def shapes_that_are_equal_or_not(x, y):
    if x.shape == y.shape and x.sum() > 0:
        x = x + y
    elif x.shape != y.shape or x.shape == [7]:
        x = x * 2
    same = (x.shape[0], 2) == (y.shape[0], 2)
    while x.shape[:1] == y.shape[:1] and x.sum() < 10 and x.sum() > 0:
        x = x * 2
    return x, same, x.shape != y.shape, [x.sum() > 0, 1] == [x.sum() > 0, 1]
