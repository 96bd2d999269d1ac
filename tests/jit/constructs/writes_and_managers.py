"""Writes in place through names that branches and loops chose, `with` around what only the run raises, and text."""

import contextlib

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n, s, scenario


@case(POS, NEG)
def one_of_none_and_a_tensor_is_written(x):
    keep = None
    if x.sum() > 0:
        keep = x * 1.0
    if keep is not None:
        keep[0] = 5.0
        keep.add_(x)
    return keep


@case(POS, NEG)
def maybe_unset_variable_is_written(x):
    if x.sum() > 0:
        y = x * 2.0
    if x.sum() > 0:
        y[1] = 7.0
        return y
    return x


@case(POS, NEG)
def one_of_two_ranks_is_written(x):
    y = x * 1.0 if x.sum() > 0 else (x * 2.0).reshape([1, 2])
    y[0] = y[0] * 2.0
    return y


@case((POS, n(3)), (POS, n(0)), (NEG, n(1)))
def one_of_two_is_written_in_a_loop(x, k):
    state = None
    for i in range(k):
        if state is None:
            state = x * 1.0
        else:
            state[0] = state[0] + i
    return state


@case((POS, n(3)), (NEG, n(2)), (POS, n(0)))
def swapped_buffers_are_written(x, k):
    a, b = x * 1.0, x * 2.0
    for i in range(k):
        a, b = b, a
        a[0] = a[0] + i
    return a, b


@case((POS, s(2)), (NEG, s(-1)))
def both_branches_hold_the_same_tensor(x, t):
    a, out = x * 1.0, []
    if t > 0:
        out.append(a)
    else:
        out.append(a)
        out.reverse()
    a[0] = t
    return a, out


class Ends:
    """Notes how it is left, and ends a ValueError."""

    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return self.log

    def __exit__(self, kind, error, traceback):
        self.log.append("out" if kind is None else kind.__name__)
        return kind is ValueError


class Notes(Ends):
    """Notes how it is left, and ends nothing."""

    def __exit__(self, kind, error, traceback):
        self.log.append("out" if kind is None else kind.__name__)


@scenario(s(2), s(0.5), s(-1))
def manager_ends_what_a_branch_raises():
    log = []

    def function(t):
        y = t * 1.0
        with Ends(log):
            y = y + 1
            if t > 1:
                raise ValueError("large")
            if t > 0:
                raise KeyError("small")
            y = y * 2
        return y

    return function, lambda: list(log)


@scenario((POS, n(3)), (NEG, n(3)), (f(9, 9), n(2)))
def manager_in_a_loop_with_jumps():
    log = []

    def function(x, k):
        for i in range(k):
            with paddle.no_grad(), Notes(log):
                if i == 1:
                    continue
                if x.sum() > 15:
                    return x, i
                x = x * 2
        return x, -1

    return function, lambda: list(log)


@case(s(2), s(-1))
def suppress_ends_what_a_branch_raises(t):
    y = t * 1.0
    with contextlib.suppress(ValueError):
        if t > 1:
            raise ValueError("large")
        y = y * 2
    return y


class Counter:
    """Counts with a manager that is a generator method."""

    def __init__(self):
        self.count = 0

    @contextlib.contextmanager
    def counting(self, by):
        self.count += by
        yield self.count
        self.count *= 2


@scenario(POS, NEG, programs=2)
def manager_made_by_a_generator_method():
    counter = Counter()

    def function(x):
        with counter.counting(3) as first:
            x = x * first if x.sum() > 0 else x
        return x

    return function, lambda: counter.count


@scenario(s(2), s(-1))
def exception_of_the_run_passes_a_generated_manager():
    log = []

    @contextlib.contextmanager
    def noted():
        log.append("in")
        yield
        log.append("out")

    def function(t):
        with noted():
            if t > 1:
                raise ValueError("large")
        return t

    return function, lambda: list(log)


@case(POS, NEG)
def text_of_one_of_several_things(x):
    tag, scale = "small", 1
    if x.sum() > 0:
        tag, scale = "large", 2.5
    print(f"{tag!r:>9} {scale}", tag)
    if x.sum() < 0:
        raise ValueError(f"no {tag}")
    return x * scale


@case((POS, n(1)), (NEG, n(3)))
def list_or_new_list(x, k):
    out = [x]
    if k > 2:
        out.append(x * 2)
    else:
        out = []
    return out


@case((POS, n(3)), (NEG, n(1)), (POS, n(0)))
def early_return_before_a_list_is_kept(x, k):
    out, keep = [], None
    if k > 2:
        return x
    if k > 0:
        keep = out
    return out, keep


@case((POS, n(3)), (NEG, n(1)))
def dict_with_or_without_a_key_is_returned_from_a_loop(x, k):
    d = {}
    if k > 2:
        d["q"] = x * 1.0
    for _ in x:
        return d
    return x


def halved(v, depth):
    return v if v.sum() < 1.7 or depth > 3 else halved(v * 0.5, depth + 1)


@case(f(100, 1), f(3, 1), f(1, 0), holds="call(")
def recursion_that_counts_its_depth(x):
    return halved(x, 0)
