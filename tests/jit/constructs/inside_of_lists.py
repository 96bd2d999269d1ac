"""Containers and objects inside of lists whose length only the run tells: changes reach the list."""

import dy2st as paddle
from tests.jit.constructs.cases import NEG, POS, case, f, n

ROW = f(1, 2, 3)
ROWS = f([[1, 2, 3], [4, 5, 6]])


class Particle:
    def __init__(self, value):
        self.value = value
        self.seen = []


def open_list(x):
    rows = []
    for v in x:
        rows.append([v])
    return rows


@case(ROW, holds="counted_while")
def appended_to_one(x):
    rows = open_list(x)
    rows[1].append(x[0] * 2)
    rows[-1][0] = x[1]
    return rows[1], rows[2], [len(row) for row in rows]


@case((ROW, n(0)), (ROW, n(2)), (ROW, n(-1)), (ROW, n(5)), holds="counted_while", same_message=False)
def appended_at_a_number_of_the_run(x, i):
    rows = open_list(x)
    rows[int(i)].append(x[0] * 2)
    return rows[0], rows[2], [len(row) for row in rows]


@case(ROW, holds="counted_while")
def kept_under_a_name(x):
    rows = open_list(x)
    row = rows[1]
    rows[1].append(x[2])
    row.append(x[0])
    same = rows[1]
    same[0] = x[0] * 5
    return row, len(rows[1]), len(rows[0])


@case(ROW, holds="counted_while")
def all_changed_in_a_loop(x):
    rows = open_list(x)
    for row in rows:
        row.append(row[0] * 2)
    for i, row in enumerate(rows):
        row[1] = row[1] + i
    return rows[2], len(rows)


@case(ROW, holds="counted_while")
def filled_after_it_was_appended(x):
    rows = []
    for v in x:
        row = []
        rows.append(row)
        row.append(v)
        row.append(v * 2)
    return rows[1], len(rows)


@case(ROWS, holds="counted_while")
def filled_in_a_loop_after_it_was_appended(x):
    rows = []
    for r in x:
        row = []
        rows.append(row)
        for v in r:
            if v > 2:
                row.append(v)
    return rows[0], len(rows[1])


@case(ROWS, holds="counted_while")
def a_table_filled_by_index(x):
    n, m = x.shape
    table = [[0.0] * 3 for _ in range(n)]
    for i in range(n):
        for j in range(m):
            table[i][j] = x[i, j] + (table[i - 1][j] if i > 0 else 0.0)
    return table[-1]


@case(ROWS, holds="counted_while")
def a_row_kept_while_another_is_filled(x):
    table = [[paddle.zeros([]) for _ in range(3)] for _ in range(x.shape[0] + 1)]
    for i in range(x.shape[0]):
        before, now = table[i], table[i + 1]
        for j in range(3):
            now[j] = before[j] * 2 + x[i, j]
    return table[-1], table[1]


@case(f(0, 0.1, 5, 5.1, 5.2), f(1, 3, 5), holds="while")
def groups_of_neighbours(x):
    groups = [[x[0]]]
    for v in x[1:]:
        if v - groups[-1][-1] < 0.5:
            groups[-1].append(v)
        else:
            groups.append([v])
    return len(groups), groups[0], len(groups[-1])


@case(ROW, holds="counted_while")
def dicts_in_a_list(x):
    records = []
    for v in x:
        records.append({"value": v, "count": 0})
    for r in records:
        if r["value"] > 1:
            r["count"] += 1
    records[0]["count"] += 5
    return [r["count"] for r in records]


@case(ROW, holds="counted_while")
def objects_in_a_list(x):
    particles = []
    for v in x:
        p = Particle(v)
        particles.append(p)
        p.value = v * 2
    for p in particles:
        p.value = p.value + 1
        p.seen.append(p.value)
    particles[int(x[0])].value = x[2] * 100
    return particles[1].value, particles[0].value, len(particles[2].seen)


@case(ROW, holds="counted_while")
def lists_in_tuples_in_a_list(x):
    rows = []
    for v in x:
        rows.append((v, [v]))
    rows[0][1].append(x[1])
    a, b = rows[1]
    b.append(a)
    return [len(row[1]) for row in rows]


@case(ROW, holds="counted_while")
def lists_in_lists_in_a_list(x):
    cube = []
    for _ in x:
        plane = []
        for w in x:
            plane.append([w])
        cube.append(plane)
    cube[1][2].append(x[0])
    return len(cube[1][2]), len(cube[0][2]), cube[1][2]


@case(ROW, holds="counted_while")
def changed_by_a_function(x):
    rows = open_list(x)

    def add(row):
        row.append(x[0])
        return row

    add(rows[2]).append(x[1])
    return len(rows[2]), rows[2]


@case(ROW, holds="while_loop")
def a_stack_of_lists(x):
    stack, turns = [[x[0], 0]], 0
    while len(stack) > 0 and turns < x.sum():
        turns += 1
        top = stack[-1]
        if top[1] < 2:
            top[1] += 1
            stack.append([top[0] * 2, top[1]])
        else:
            stack.pop()
    return turns, len(stack)


@case((ROW, n(0)), (ROW, n(-1)), (ROW, n(2)), holds="cond")
def one_of_a_few_lists(x, i):
    rows = [[x[0]], [x[1]]]
    rows[int(i)].append(x[2])
    return rows


@case((ROW, n(0)), (ROW, n(1)), holds="cond")
def one_of_a_few_objects(x, i):
    particles = [Particle(x[0]), Particle(x[1])]
    particles[int(i)].value = x[2]
    particles[int(i) - 1].value += x[0]
    return [p.value for p in particles]


@case(POS, NEG, holds="cond")
def a_list_that_may_be_none(x):
    found = [x] if x.sum() > 0 else None
    if found is not None:
        found.append(x * 2)
    return found


@case(POS, NEG, holds="cond")
def a_list_in_a_dict_grows_or_is_made_anew(x):
    d = {"h": [x], "n": 1}
    if x.sum() > 0:
        d["h"].append(x * 2)
    else:
        d["h"] = []
    return d, len(d["h"])


@case(ROW, holds="counted_while")
def a_list_is_put_where_another_has_come(x):
    rows = open_list(x)
    row = rows[-1]
    rows.append([x[0]])
    rows[-1] = row
    return [len(r) for r in rows], rows[3], rows[2]


@case(ROW, holds="counted_while")
def extended_by_lists(x):
    rows = open_list(x)
    rows += [[x[0]], [x[1]]]
    rows.extend([[x[2]]])
    rows[3].append(x[1])
    rows[-1].append(x[0])
    return [len(r) for r in rows]


class Node:
    def __init__(self, value, parent=None):
        self.value, self.parent, self.below = value, parent, []
        if parent is not None:
            parent.below.append(self)


@case((ROW, n(1)), (ROW, n(2)), holds="cond")
def objects_that_lead_to_each_other(x, i):
    root = Node(x[0])
    nodes = [Node(x[j], root) for j in range(3)]
    for node in nodes:
        Node(x[0] * 2, node)
        Node(x[1], node)
    nodes[int(i)].value = x[2] * 5
    return [node.value for node in nodes]
