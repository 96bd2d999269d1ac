"""Branches: if, elif, else, ternary, match; what is set on one path and what is made in one."""

from tests.jit.constructs.cases import NEG, POS, case, f, n, s


class Pair:
    def __init__(self, left, right):
        self.left, self.right = left, right


@case(POS, NEG, holds="cond")
def if_else(x):
    if x.sum() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


@case(POS, NEG, holds="cond")
def if_without_else(x):
    y = x
    if x.sum() > 0:
        y = x * x
    return y


@case(f(5, 5), f(1, 1), f(-1, -1), f(-5, -5), holds="cond")
def elif_chain(x):
    if x.sum() > 5:
        y = x * 2
    elif x.sum() > 0:
        y = x * 3
    elif x.sum() > -5:
        y = x * 4
    else:
        y = x * 5
    return y


@case((POS, s(1)), (POS, s(-1)), (NEG, s(1)), (NEG, s(-1)), holds="cond")
def nested(x, a):
    if x.sum() > 0:
        if a > 0:
            y = x * a
        else:
            y = x + a
        y = y * 2
    else:
        y = x if a > 0 else -x
    return y


@case((POS, True), (NEG, True), (POS, False), holds=(), programs=2)
def python_or_tensor_condition(x, flag):
    test = (x.sum() > 0) if flag else False
    if test:
        return x * 2
    return x


@case(POS, holds="cond")
def set_on_one_path_read_on_right_path(x):
    if x.sum() > 0:
        y = x * 2
    return y


@case(POS, NEG, holds="cond")
def set_on_one_path_read_on_wrong_path(x):
    if x.sum() > 0:
        y = x * 2
    return y + 1


@case(POS, NEG, holds="cond")
def read_under_the_same_condition(x):
    if x.sum() > 0:
        y = x * 2
    z = x
    if x.sum() > 0:
        z = y + 1
    return z


@case(POS, NEG, holds="cond")
def ternary(x):
    return x * 2 if x.sum() > 0 else x - 1


@case(POS, NEG, f(0, 0), holds="cond")
def nested_ternary(x):
    return x * 2 if x.sum() > 0 else (x - 1 if x.sum() < 0 else x + 100)


@case(n(1), n(2), n(7), holds="cond")
def match_on_tensor(k):
    match k:
        case 1:
            return k * 10
        case 2 | 3:
            return k * 20
        case other:
            return other + 1


@case((POS, "a"), (POS, "b"), programs=2)
def match_on_string(x, kind):
    match kind:
        case "a":
            return x * 2
        case _:
            return x * 3


@case((POS, (1, 2)), (NEG, (1, 2)), holds="cond")
def match_sequence_with_guard(x, pair):
    match pair:
        case (a, b) if x.sum() > 0:
            return x * a
        case (a, b):
            return x * b
    return x


@case(POS, NEG, holds="cond")
def function_defined_in_branch(x):
    if x.sum() > 0:

        def g(v):
            return v * 2

    else:

        def g(v):
            return v * 3

    return g(x)


@case(POS, NEG, holds="cond")
def lambda_in_branch(x):
    k = lambda v: v
    if x.sum() > 0:
        k = lambda v: v * v
    return k(x)


@case(POS, NEG, holds="cond")
def import_in_branch(x):
    if x.sum() > 0:
        import math

        y = x * math.pi
    else:
        y = x
    return y


@case(POS, NEG, holds="cond")
def class_in_branch(x):
    if x.sum() > 0:

        class Scale:
            k = 2

        return x * Scale.k
    return x


@case(POS, NEG, holds="cond")
def delete_in_branch(x):
    y = x * 2
    if x.sum() > 0:
        z = y
        del y
    else:
        z = y + 1
    return z


@case(NEG, POS, holds="cond")
def delete_then_read(x):
    y = x * 2
    if x.sum() > 0:
        del y
    return y


@case(POS, NEG, holds="cond")
def pass_in_branch(x):
    if x.sum() > 0:
        pass
    else:
        x = x * 2
    return x


@case(POS, NEG, holds="cond")
def swap_in_branch(x):
    a, b = x, x * 2
    if x.sum() > 0:
        a, b = b, a
    return a, b


@case((f([[1, 2], [3, 4]]), n(0)), (f([[1, 2], [3, 4]]), n(1)), holds="cond")
def shapes_decide(x, k):
    if k > 0:
        y = x.reshape([-1])
    else:
        y = x.sum(1)
    return y.sum(), len(y)


@case(f(1, 2, 3), f(1, 2, 3, 4, 5, 6))
def condition_on_shape(x):
    if x.shape[0] > 4:
        return x[:4]
    return x * 2


@case(POS, NEG, holds="cond")
def variable_read_by_the_other_branch(x):
    y = x * 2
    if x.sum() > 0:
        y = y + 1
        z = y
    else:
        z = y * 3
    return z


@case(POS, NEG, holds="cond")
def object_made_in_branch(x):
    if x.sum() > 0:
        p = Pair(x, 1)
    else:
        p = Pair(x * 2, 2.5)
    return p.left, p.right


@case(POS, NEG, holds="cond")
def one_of_two_lists_is_changed(x):
    a, b = [x], [x * 2]
    c = a if x.sum() > 0 else b
    c.append(x * 3)
    return a, b


@case(POS, NEG, holds="cond")
def list_made_in_branch_holds_a_list(x):
    if x.sum() > 0:
        rows = [[x], [x, x * 2]]
    else:
        rows = [[x * 3]]
    return rows, len(rows)


@case(POS, NEG, f(0.1, 0.2), holds="cond")
def assigned_in_both_and_read_in_the_other(x):
    a = x * 1.0
    if a.sum() > 2:
        a = a
    else:
        if a.sum() > 0.1:
            a = (a + a) + (a + a)
    a = x + x
    return a
