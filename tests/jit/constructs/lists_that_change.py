"""Loops through lists that their own bodies change: each turn asks how long the list is, and for its item."""

from tests.jit.constructs.cases import NEG, POS, case, n


@case(POS, NEG)
def a_list_grows(x):
    out, s = [x], x.sum()
    for v in out:
        s = s + v[0]
        if len(out) > 5:
            break
        out.append(v * 2)
    return s, out


@case(POS, NEG, holds="while_loop")
def a_list_grows_as_the_run_tells(x):
    out, s = [x, x * 2], x.sum()
    for v in out:
        s = s + v[0]
        if s > 40 or len(out) > 6:
            break
        out.append(v * 2)
    return s, out


@case((POS, n(3)), (POS, n(0)), (NEG, n(5)), holds="while_loop")
def a_list_of_unknown_length_grows(x, k):
    out, s = [x * i for i in range(k)], x.sum()
    for v in out:
        s = s + v[0]
        if len(out) < 7:
            out.append(v + 1)
    return s, out


@case((POS, n(3)), (NEG, n(4)), holds="while_loop")
def a_queue_of_pairs(x, k):
    queue, seen = [(x, k)], x * 0
    for v, depth in queue:
        seen = seen + v
        if depth > 0:
            queue.append((v * 2, depth - 1))
            queue.append((v - 1, depth - 1))
    return seen, len(queue)


@case((POS, n(3)), (NEG, n(6)), holds="while_loop")
def items_go_and_come_in_front(x, k):
    out, s = [x * i for i in range(k)], x.sum()
    for v in out:
        s = s * 2 + v[0]
        if len(out) > 2:
            out.pop()
        if s < -5:
            out.insert(0, v)
        if len(out) > 9:
            break
    return s, out


@case((POS, n(3)), (NEG, n(5)), holds="while_loop")
def items_behind_are_set(x, k):
    out, s = [x * i for i in range(k)], x.sum()
    for i, v in enumerate(out):
        s = s * 2 + v[0]
        if i + 1 < len(out):
            out[i + 1] = out[i + 1] + v
    return s, out


@case((POS, n(3)), (NEG, n(4)), holds="while_loop")
def one_of_two_lists_grows(x, k):
    out, more = [x * i for i in range(k)], [x + i for i in range(5)]
    s = x * 0
    for v, w in zip(out, more):
        s = s * 2 + v * w
        if len(out) < 4:
            out.append(w)
    return s, len(out)


@case((POS, n(3)), (NEG, n(4)))
def known_lists_are_set_and_grow(x, k):
    out, s = [x, x * 2, x * 4], x.sum()
    for i, v in enumerate(out):
        s = s * 2 + v[0] * i
        out[-1] = out[-1] + v
        if len(out) < 5:
            out.append(v)
    for _ in range(k):
        for v in out:
            s = s + v[0]
            if len(out) > 2:
                out.pop()
    return s, out


@case((POS, n(3)), (NEG, n(4)), holds="counted_while")
def a_copy_is_run_through(x, k):
    out, s = [x * i for i in range(k)], x.sum()
    for v in list(out):
        s = s + v[0]
        out.append(v)
    return s, len(out)
