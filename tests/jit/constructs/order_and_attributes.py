"""`sorted`, `min` and `max` by keys of the run, `in` on lists of open length, classes with a `__setattr__` or slots."""

from dataclasses import FrozenInstanceError, dataclass, field

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n

ROW = f(3, 1, 2, 1)
LONG = f(3, 1, 2, 1, 5)


@dataclass(frozen=True)
class Frozen:
    value: object


@dataclass(slots=True)
class State:
    value: object
    count: int = 0
    seen: list = field(default_factory=list)


class Private:
    __slots__ = ("__turns", "_value")

    def __init__(self, value):
        self._value = value
        self.__turns = 1

    def turn(self):
        self.__turns += 1
        if self._value.sum() > 0:
            self._value = -self._value
        return self.__turns


class Slotted(Private):
    __slots__ = ("more",)

    @property
    def value(self):
        return self._value


class Watched:
    def __init__(self):
        object.__setattr__(self, "names", [])

    def __setattr__(self, name, value):
        self.names.append(name)
        super().__setattr__(name, value)


class Version:
    def __init__(self, k):
        self.k = k

    def __lt__(self, other):
        return self.k < other.k

    def __eq__(self, other):
        return isinstance(other, Version) and self.k == other.k

    __hash__ = None


@case(POS, NEG)
def comparisons_of_what_is_no_tensor(x):
    a, b, c = Version(1), Version(2), Version(1)
    told = [a < b, a > b, a == c, a != c, a != b, a == 1]
    for left, right in (([1, 2], [1, 3]), ((1, "a"), (1, "a")), ({1, 2}, {2, 1}), ({"k": 1}, {"k": 2}), ("ab", "b")):
        told += [left == right, left != right]
        if not isinstance(left, dict):
            told += [left < right, left >= right]
    told += [x.shape == [3], len(x.shape) != 1, b"a" < b"b", (1, 2) <= (1,), [x] == [x, x]]
    return x * sum(2**i for i, one in enumerate(told) if one is True), sum(one is False for one in told)


@case(ROW, LONG, holds="argsort")
def sorted_pairs(x):
    pairs = [(float(v), i) for i, v in enumerate(x)]
    best = sorted(pairs, reverse=True)
    return [i for _, i in sorted(pairs)], best[0], [i for _, i in sorted(pairs, key=lambda p: p[0])]


@case(ROW, holds="argsort")
def sorted_by_two_keys(x):
    pairs = [(float(v), i) for i, v in enumerate(x)]
    return sorted(pairs, key=lambda p: (p[0], -p[1])), sorted(pairs, key=lambda p: -p[0], reverse=True)


@case(ROW, holds="argsort")
def sorted_tensors_of_a_short_list(x):
    rows = [x, x * -1, x + 1]
    rows.sort(key=lambda row: row.sum())
    return rows, sorted([x[0], x[1], x[2]], key=lambda v: -v)


@case(ROW, holds="argsort")
def a_beam(x):
    beams = [([], 0.0)]
    for t in range(x.shape[0]):
        found = []
        for words, score in beams:
            for k in range(3):
                found.append((words + [k], score + x[t] * (k - 1)))
        beams = sorted(found, key=lambda c: -float(c[1]))[:2]
    return beams[0], len(beams)


@case(ROW, LONG, holds="cond")
def extremes_by_a_key(x):
    i = max(range(4), key=lambda k: x[k] * (-1) ** k)
    return i, min([x[0], x[1], x[2]], key=lambda v: abs(v - 2)), max(x, key=lambda v: -v)


@case(ROW, holds="cond")
def extremes_of_nothing(x):
    return max([v for v in x if v > 100], default=0), min((v for v in x if v > 1), default=1), max([], default=4)


@case(ROW, LONG, holds="while")
def seen_before(x):
    seen = []
    for v in x.astype("int64"):
        if v not in seen:
            seen.append(v)
    return sorted(seen), len(seen)


@case(POS, NEG, holds="cond", same_message=False)
def a_frozen_object_is_written(x):
    p = Frozen(x)
    if x.sum() > 0:
        p.value = x * 2
    return p.value


@case(POS, holds="cond")
def a_frozen_error_is_caught(x):
    p = Frozen(x)
    try:
        p.value = x * 2
    except FrozenInstanceError:
        return x * 3 if x.sum() > 0 else x
    return p.value


@case(POS, NEG, holds="cond")
def attributes_are_watched(x):
    w = Watched()
    if x.sum() > 0:
        w.up = x
    else:
        w.down = x
    w.last = 1
    return w.names


@case((POS, n(2)), holds="cond")
def an_attribute_of_none_is_written(x, k):
    p = paddle if x.sum() < k else None
    if p is None:
        p.value = x
    return x


@case(f(-1, 2), f(9, 9), holds="while_loop")
def a_state_with_slots(x):
    s = State(x)
    while s.value.sum() < 9:
        s.value = s.value + 1
        s.count += 1
        s.seen.append(s.value.sum())
    if s.count > 2:
        s = State(s.value * 2, s.count, s.seen)
    return s.value, s.count, s.seen


@case(POS, NEG, holds="cond")
def slots_of_two_classes(x):
    s = Slotted(x)
    turns = s.turn()
    has = hasattr(s, "more")
    s.more = x * 3 if x.sum() > 0 else x
    return turns, s.value, has, s.more


@case(POS, NEG, holds="cond")
def a_state_with_slots_is_matched(x):
    s = State(x, 1 if x.sum() > 0 else 2)
    match s:
        case State(count=1):
            return "one", x
        case State(value=v, count=2):
            return "two", v * 2


@case(POS)
def an_attribute_that_is_no_slot(x):
    s = Slotted(x)
    s.nothing = 1
    return x


@case(ROW, holds="counted_while")
def states_with_slots_in_a_list(x):
    states = []
    for v in x:
        states.append(State(v))
    for s in states:
        if s.value > 1:
            s.count += 1
    states[0].value = x[1] * 5
    return [s.count for s in states], states[0].value


@case(ROW, holds="argsort")
def sorted_by_numbers_of_two_kinds(x):
    return sorted([x[0], 2, x[2]], key=lambda v: v if isinstance(v, int) else float(v))[0]
