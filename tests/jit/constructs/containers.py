"""Dicts, sets, deques, tuples, objects and items of lists in tensor control flow."""

from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass

from tests.jit.constructs.cases import NEG, POS, case, f, n, s

Point = namedtuple("Point", "a b")
ROWS = f([[1, 1], [2, 2], [3, 3]])


@dataclass
class Pair:
    left: object
    right: object


class Box:
    def __init__(self, value):
        self.value = value


@case(POS, NEG, holds="cond")
def item_assignment_in_branch(x):
    out = [x, x]
    if x.sum() > 0:
        out[0] = x * 5
    else:
        out[-1] = x * 7
    return out


@case((POS, n(1)), (POS, n(-1)))
def index_by_tensor(x, k):
    items = [x, x * 2, x * 3]
    return items[k]


@case((POS, n(1)), (POS, n(2)))
def assign_by_tensor(x, k):
    items = [x, x * 2, x * 3]
    items[k] = x * 100
    return items


@case((ROWS,), holds="counted_while")
def comprehension_over_tensor(x):
    return [row * 2 for row in x]


@case((ROWS, s(3)), holds="counted_while")
def comprehension_with_filter(x, limit):
    return [row * 2 for row in x if row.sum() > limit]


@case(POS)
def comprehension_over_list(x):
    return [x * k for k in [1, 2, 3] if k != 2], {k: x + k for k in (1, 2)}


@case((POS, n(2)), holds="counted_while")
def nested_lists(x, k):
    out = [[], []]
    for i in range(k):
        out[0].append(x * i)
        out[1].append(x + i)
    return out


@case(POS, NEG, holds="cond")
def dict_new_key_in_branch(x):
    d = {"a": x}
    if x.sum() > 0:
        d["b"] = x * 2
    return d


@case(POS, NEG, holds="cond")
def dict_written_in_both(x):
    d = {}
    if x.sum() > 0:
        d["y"] = x * 2
    else:
        d["y"] = x * 3
    return d["y"], "y" in d, len(d)


@case((POS, n(3)), holds="counted_while")
def dict_in_loop(x, k):
    d = {"h": x, "c": x * 0}
    for i in range(k):
        d["h"] = d["h"] * 2
        d["c"] = d["c"] + d["h"]
    return d


@case(POS, NEG, holds="cond")
def dict_methods(x):
    d = {"a": x, "b": x * 2}
    if x.sum() > 0:
        d.update({"c": x})
        d.pop("a")
    else:
        d.setdefault("z", x * 9)
    return d, list(d)


@case(POS, NEG, holds="cond")
def set_and_deque(x):
    seen, queue = {1}, deque([x], maxlen=2)
    if x.sum() > 0:
        seen.add(2)
        queue.append(x * 2)
    else:
        queue.appendleft(x * 3)
    return len(seen), list(queue)


@case(POS, NEG, holds="cond")
def namedtuple_in_branch(x):
    p = Point(x, 1)
    if x.sum() > 0:
        p = Point(x * 2, 2)
    return p, p.a, p.b


@case(POS, NEG, holds="cond")
def dataclass_written_in_branch(x):
    p = Pair(x, x)
    if x.sum() > 0:
        p.left = x * 2
    return p.left, p.right


@case(POS, NEG, holds="cond")
def dataclass_made_in_branch(x):
    if x.sum() > 0:
        p = Pair(x, x * 2)
    else:
        p = Pair(x * 3, x)
    return p.left, p.right


@case((POS, n(3)), (POS, n(0)), holds="counted_while")
def object_written_in_loop(x, k):
    box = Box(x)
    for i in range(k):
        box.value = box.value * 2 + i
    return box.value


@case(POS, NEG, holds="cond")
def alias_of_list(x):
    a = [x]
    b = a
    if x.sum() > 0:
        b.append(x * 2)
    return a, len(a), a is b


@case(POS, NEG, holds="cond")
def list_chosen_in_branch(x):
    a, b = [x], [x * 2]
    c = a
    if x.sum() > 0:
        c = b
    c.append(x * 3)
    return a, b


@case((POS, [1, 2]), (NEG, [1, 2]), holds="cond")
def mutates_list_argument(x, items):
    if x.sum() > 0:
        items.append(3)
    items[0] = 10
    return x * len(items)


@case((POS, {"a": 1}), (NEG, {"a": 1}), holds="cond")
def mutates_dict_argument(x, d):
    if x.sum() > 0:
        d["b"] = x * 2
    return x


@case(POS, NEG, holds="cond")
def other_dicts(x):
    d, e = defaultdict(list), OrderedDict(a=x)
    if x.sum() > 0:
        e["b"] = x * 2
    d["k"].append(x)
    return list(e.values()), d["k"]


@case(POS, NEG, holds="cond")
def tuple_unpack_after_branch(x):
    pair = (x, 1) if x.sum() > 0 else (x * 2, 5)
    a, b = pair
    return a * b


@case(POS, NEG, holds="cond")
def list_unpack_after_branch(x):
    if x.sum() > 0:
        pair = [x, x + 1]
    else:
        pair = [x * 2, x * 3]
    a, b = pair
    return a - b


@case((POS, n(1)), (NEG, n(1)))
def a_list_in_a_dict_that_may_have_gained_a_key(x, k):
    found = {"log": []}
    if x.sum() > 0:
        found["done"] = k
    log = found["log"]
    log.append(x)
    if k > 0:
        found["last"] = log
    log.append(x * 2)
    return found, log


@case((POS, n(5)), (NEG, n(5)), (POS, n(0)))
def a_state_that_a_loop_leaves_early(x, k):
    state = {"at": x.sum() * 0, "log": []}
    for i in range(k):
        state["at"] = state["at"] + x.sum()
        state["log"].append(state["at"])
        if state["at"] > 4:
            state["done"] = i
            break
    return state["log"], state.get("done")
