"""Keys of dicts and sets that only the run tells."""

from collections import Counter

from tests.jit.constructs.cases import NEG, POS, case, n


@case(POS, NEG, holds="cond")
def an_item_chosen_by_a_branch(x):
    d = {"pos": x * 0, "neg": x * 0}
    for row in (x, x - 5, x + 5):
        k = "pos" if row.sum() > 0 else "neg"
        d[k] = d[k] + row
    return d


@case(POS, NEG, holds="cond")
def counts_by_a_name(x):
    d = {"pos": 0, "neg": 0}
    for row in (x, x - 5, x + 5):
        d["pos" if row.sum() > 0 else "neg"] += 1
    return d


@case(POS, NEG, holds="cond")
def counter_by_a_name(x):
    c = Counter()
    for row in (x, x - 5, x + 5):
        c["pos" if row.sum() > 0 else "neg"] += 1
    return c["pos"], c["neg"]


@case((POS, n(1)), (POS, n(2)), (POS, n(7)), holds="cond")
def an_item_at_a_number(x, k):
    return {1: x * 2, 2: x * 3}[int(k)]


@case((POS, n(1)), (POS, n(2)), (POS, n(7)), holds="cond")
def counts_by_a_number(x, k):
    c = {0: 0, 1: 0, 2: 0}
    for i in range(3):
        c[int(k)] += i
    return c


@case((POS, n(1)), (POS, n(7)), holds="cond")
def a_key_that_was_found(x, k):
    d, i = {0: x, 1: x + 1}, int(k)
    if i in d:
        d[i] = d[i] * 2
    return d, d.get(i, x), i not in d, i in {1, 2}


@case(POS, NEG, holds="cond")
def a_bool_as_a_key(x):
    return {True: x, False: -x}[bool(x.sum() > 0)]


@case(POS, NEG, holds="cond")
def new_keys_by_a_branch(x):
    d = {}
    for i in range(3):
        d["a" if x.sum() > i else "b"] = x * i
    return d


@case(POS, NEG, holds="cond")
def popped_by_a_key_of_a_branch(x):
    d = {"a": x, "b": x * 2, "c": x * 3}
    k = "a" if x.sum() > 0 else "b"
    v = d.pop(k)
    del d["a" if k == "b" else "b"]
    return v, len(d), d.setdefault(k, x * 9), d


@case((POS, n(1), n(0)), (POS, n(3), n(1)), (POS, n(0), n(5)), holds="cond")
def a_tuple_as_a_key(x, i, j):
    grid = {(a, b): x * a + b for a in range(4) for b in range(2)}
    return grid.get((int(i), int(j)), x), (int(i), int(j)) in grid


@case(POS, NEG, holds="cond")
def lists_by_a_key(x):
    d = {"pos": [], "neg": []}
    for row in (x, x - 5, x + 5):
        d["pos" if row.sum() > 0 else "neg"].append(row)
    return d
