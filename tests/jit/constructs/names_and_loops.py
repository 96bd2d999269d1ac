"""Names, items and loops that change under their hands: growing values, entries made on one path, jumps in loops."""

import collections
import warnings

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s, scenario


@case(n(0), n(1), n(3), holds="while_loop")
def a_vector_grows(k):
    v = paddle.zeros([2], "int64")
    i = 0
    while i < k:
        v = paddle.concat([v, paddle.to_tensor([i])])
        i += 1
    return v


@case(n(0), n(2), holds="counted_while")
def a_matrix_grows_on_both_axes(k):
    m = paddle.ones([1, 1])
    for i in range(k):
        m = paddle.nn.functional.pad(m, [1, 1, 1, 1], value=2.0)
    return m


@case(n(0), n(2), n(3), n(6), holds="cond")
def a_value_grows_in_a_branch_and_breaks(k):
    v = paddle.zeros([2], "int64")
    if k > 1:
        for i in range(k):
            v = paddle.concat([v, paddle.to_tensor([i])])
            i += 1
            if i > 3:
                break
    else:
        v = paddle.to_tensor([1, 2, 3])
    return v


@case(n(3), n(0), holds="while_loop")
def a_dict_made_in_each_turn(k):
    i = 0
    while i < k:
        v = {"a": paddle.zeros([1, 2]) + i, "b": paddle.ones([2])}
        i += 1
    return v["a"], v["b"]


@case(n(2), n(-1), holds="cond")
def an_entry_on_one_path(a):
    x = {"a": {"a": a}}
    if x["a"]["a"] > 0:
        x["a"]["b"] = 1
    return x


@case(n(2), n(-1))
def an_entry_of_what_is_not_there(a):
    x = {"a": {"a": a}}
    if x["a"]["a"] > 0:
        x["b"]["a"] = 1
    else:
        x["b"]["a"] = -1
    return x


@case(n(3), n(11), holds="while_loop")
def an_entry_made_in_a_loop(b):
    y = {"b": b}
    while y["b"] <= 10:
        y["a"] = y["b"] + 1
        y["b"] = y["b"] * 2
    return y


@case((n(3), n(1)), (n(0), n(1)), holds="counted_while")
def items_of_a_list_in_a_loop(k, a):
    y = [a, a * 2]
    for i in range(k):
        y[0] += i
        y[-1] = y[-1] - y[0]
    return y


@case(n(0), n(1), n(4), holds="cond")
def a_return_at_each_end_of_a_turn(x):
    total = 0
    while x > 0:
        x = x - 1
        total = total + x
        if x % 2 > 0:
            return total
        else:
            return -total
    return total


@case(n(0), n(2), n(5), holds="while_loop")
def several_breaks(k):
    total, i = 1, 0
    while i < k:
        i += 1
        if i > 10 * k:
            break
        if i == k:
            break
        total = total * 10 + i
    return i, total


@case((n(2), n(4)), (n(4), n(1)), (n(0), n(3)), holds="while_loop")
def break_or_continue_in_an_inner_while(x, y):
    total = 0
    while x > 0:
        x = x - 1
        while y > 0:
            y = y - 1
            if (x + y) % 2 > 0:
                break
            else:
                continue
        total = total + x + y
    return total


@case((f(1, 2, 3),), (f(5, 2, 3),), holds="while_loop")
def else_of_nested_loops(x):
    for i in range(2):
        for v in x:
            if v > 4:
                break
            x = x + i
        else:
            x = x * 2
            continue
        break
    else:
        x = x - 1
    return x


@case(POS, NEG, holds="cond")
def walrus_in_a_condition_and_a_while(x):
    k = 0
    if (total := x.sum()) > 0 and (big := total * 2) > 1:
        x = x * big
    while (k := k + 1) < 4:
        x = x + k
    return x, total, k


@case(POS, NEG, holds="cond")
def starred_values(x):
    head, *rest = (x, x * 2, x * 3) if x.sum() > 0 else (x * 4, x, x)
    return [*rest, head], {"a": head, "b": rest[-1]}


@case(POS, NEG, holds="cond")
def deleted_item_on_one_path(x):
    d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        del d["a"]
    return "a" in d, len(d), d["b"]


@case(POS, NEG, holds="cond")
def namedtuple_replaced_in_a_loop(x):
    point = collections.namedtuple("point", ["a", "b"])
    p = point(x, x * 0)
    for _ in range(3):
        if p.a.sum() < 4:
            p = p._replace(a=p.a * 2, b=p.b + 1)
    return p.a, p.b


@case((f(1, 2, 3), n(2)), (f(1, 2, 3), n(0)), holds="counted_while")
def a_deque_of_the_last_two(x, k):
    last = collections.deque([x[0], x[1]])
    for i in range(k):
        last.append(last[0] + last[1] + i)
        last.popleft()
    return list(last)


@case(POS, NEG, holds="cond")
def default_dict_and_counter(x):
    found = collections.defaultdict(list)
    count = collections.Counter("hello")
    found["all"].append(x * count["l"])
    if x.sum() > 0:
        found["up"].append(x)
    return found["all"][0], len(found["up"])


@case((POS, n(0)), (POS, n(1)), (POS, n(5)), holds="cond")
def match_of_values_and_or(x, k):
    match k:
        case 0 | 1:
            y = x
        case v if v > 3:
            y = x * v
        case _:
            y = -x
    return y


@case(POS, NEG, holds="cond")
def match_of_a_mapping_and_class(x):
    d = {"kind": "a", "value": x} if x.sum() > 0 else {"kind": "b", "other": 3}
    match d:
        case {"kind": "a", "value": v}:
            return v * 2
        case {"kind": str(), **rest}:
            return x * rest["other"]
    return x


@case(POS, NEG, holds="cond")
def warning_on_one_path(x):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        if x.sum() > 0:
            y = x * 2
        else:
            y = x * 3
    return y, len(seen)


@case(POS, NEG, holds="cond")
def amp_around_a_branch(x):
    with paddle.amp.auto_cast(enable=False):
        y = x * 2 if x.sum() > 0 else x * 3
    return y


@case(POS, NEG, holds="cond")
def no_grad_as_a_decorator(x):
    @paddle.no_grad()
    def scale(v):
        if v.sum() > 0:
            return v * 2
        return v * 3

    return x * scale(x)


@case((f([[1, 2], [3, 4]]),), (f([[-1, 2], [3, 4]]),), holds="cond")
def a_view_of_a_view_then_mutation(x):
    y = x * 1
    row = y[0]
    flat = row.reshape([2, 1])
    if x.sum() > 9:
        y[0, 1] = 7.0
    else:
        y[0] = y[1] * 2
    return flat, row, y


@case(POS, NEG, holds="cond")
def in_place_on_one_path(x):
    y = x * 1
    z = y
    if x.sum() > 0:
        y.add_(x)
        z.scale_(2.0)
    return y, z


@scenario((POS,), (NEG,), holds="cond")
def a_generator_that_is_sent_to():
    log = []

    def numbers():
        got = 0
        while got < 3:
            log.append(got)
            got = yield got + 1

    def fn(x):
        it = numbers()
        k = next(it)
        k = it.send(2)
        return x * k if x.sum() > 0 else x

    return fn, lambda: list(log)


@case((f(3, 1, 2), n(2)), (f(3, 1, 2), n(0)))
def chained_targets_and_swaps(x, k):
    a = b = x
    for i in range(k):
        a, b = b + i, a
        a[0] = i
    return a, b


@case(s(3), s(-3), holds="cond")
def conditional_lambda_default(x):
    fn = (lambda v, k=x: v * k) if x > 0 else (lambda v, k=2: v - k)
    return fn(x)


@case(POS, NEG, holds="cond")
def nonlocal_in_two_levels(x):
    total = x * 0

    def outer():
        def inner():
            nonlocal total
            if x.sum() > 0:
                total = total + x

        inner()
        inner()

    outer()
    return total


@case(POS, NEG, holds="cond")
def sets_and_frozensets(x):
    kinds = {"a"}
    if x.sum() > 0:
        kinds.add("b")
    return x * len(kinds), "b" in kinds, frozenset("ab") == {"a", "b"}


@case(POS, NEG, holds="cond")
def slices_and_del_of_lists(x):
    rows = [x, x * 2, x * 3, x * 4]
    if x.sum() > 0:
        del rows[1:3]
        rows[0:1] = [x * 9, x * 8]
    return rows
