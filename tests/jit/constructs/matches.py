"""`match` on what only the run tells: the length of a list, the values in a pattern, lists inside of other things."""

from tests.jit.constructs.cases import POS, case, n

COUNTS = [(POS, n(i)) for i in range(4)]


def multiples(x, count):
    made = []
    for i in range(count):
        made.append(x * i)
    return made


@case(*COUNTS, holds="cond")
def an_open_list(x, count):
    match multiples(x, count):
        case []:
            return x
        case [a] | [a, _]:
            return a + 1
        case [first, *between, last]:
            return first, between, last


@case(*COUNTS, holds="while_loop")
def an_open_list_taken_apart(x, count):
    left, total = multiples(x, count), x
    while left:
        match left:
            case [first, *left]:
                total = total * 0.5 + first
    return total


@case(*COUNTS)
def an_open_list_that_keeps_its_name(x, count):
    made = multiples(x, count)
    match made:
        case [_, _, *_] as pair:
            pair.append(x)
    return made


@case(*COUNTS)
def open_lists_in_a_tuple_and_a_dict(x, count):
    match ("made", {"rows": multiples(x, count)}):
        case (_, {"rows": [row]}):
            return row
        case (name, {"rows": [row, *rest]}):
            return name, row, rest
        case (name, {"rows": rows}):
            rows.append(x)
            return rows


@case(*COUNTS)
def values_that_only_the_run_tells(x, count):
    made = [int(count), len(multiples(x, count)) > 1]
    match made:
        case [0, _]:
            return x
        case [1 | 3 as k, True | False as several]:
            return x * k, several
        case [k, True]:
            return k


@case(*COUNTS)
def a_flag_that_only_the_run_tells(x, count):
    several = len(multiples(x, count)) > 1
    flag = None if count > 2 else several
    match flag:
        case True:
            x = x + 1
        case None:
            x = x + 2
    return x, several is True, flag is not False
