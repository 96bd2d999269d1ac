"""Functions of `math` on symbolic numbers, text written with `%` and `format`, and starred targets."""
# ruff: noqa: UP031, F507 (what is tested here)

import math

from tests.jit.constructs.cases import NEG, POS, case, f, n, s


@case(POS, f(4, 0, 9), holds="sqrt")
def math_of_numbers_of_the_run(x):
    scale = 1 / math.sqrt(x.shape[0])
    return x * math.sqrt(x.sum()) + math.exp(-float(x[0])), scale, math.floor(x[1] * 1.5), math.ceil(x.shape[0] / 2)


@case(s(4), s(-4), s(0))
def math_domain(t):
    return math.sqrt(t), math.log(t)


@case(s(1), s(1000))
def math_range(t):
    return math.exp(t)


@case(s(0.5), s(float("inf")))
def math_of_infinity(t):
    return math.sin(t), math.fabs(-t), math.floor(3)


@case((POS, n(3)), (NEG, n(12)))
def percent_text(x, k):
    print("%d|%5d|%-5d|%05d|%+d of %s" % (k, k, k, k, k, k))
    print("%.2f|%8.3e|%g|%%|%x|%s" % (x.sum(), x[0], x[1], k, k))
    print("%(a)d and %(b)r" % {"a": k, "b": k})
    print("only %s" % k, "plain %d" % 3)
    return x


@case((POS, n(3)), (NEG, n(12)))
def format_text(x, k):
    print(f"{k} {x.sum():.3f} {k:4d}|{k!r}")
    print(f"{k} and {2}", f"plain {3}")
    return x


@case(n(3), same_message=False)
def percent_with_too_few_values(k):
    return "%d %d" % (k,)


@case(n(3))
def percent_with_too_many_values(k):
    return "%d" % (k, k)


@case(POS, f(1, 2, 3), f(7))
def starred_rows_of_unknown_number(x):
    first, *rest = x
    total = first
    for v in rest:
        total = total + v * 2
    return total, len(rest)


@case(f([[1, 2], [3, 4], [5, 6]]), f([[1, 2], [3, 4]]))
def starred_in_the_middle(x):
    first, *middle, last = x
    return first, middle, last


@case(POS, NEG)
def joined_texts(x):
    return ", ".join(str(n) for n in x.shape), "-".join(["a", f"{x.shape[0] * 2}", "b"]), "/".join(["c", "d"])


@case(POS, NEG)
def special_floats(x):
    v = float(x.sum())
    return math.isnan(v), math.isinf(v * 1e308 * 1e10), math.isfinite(v), math.isnan(math.inf - math.inf)


@case(f(0.5), f(1.5), f(0.0), f(-2.0))
def functions_of_math(x):
    v = float(x[0])
    return math.asinh(v), math.sinh(v), math.cosh(v), math.acosh(v + 3), math.atanh(v / 4), math.lgamma(v)


@case(f(0.5), f(1.5), f(-1.0))
def functions_of_math_with_a_domain(x):
    v = float(x[0])
    return math.asin(v), math.acos(v)


@case(f(1.0), f(800.0), f(-710.5), f(float("inf")))
def functions_of_math_that_overflow(x):
    v = float(x[0])
    return math.sinh(v), math.cosh(v)


@case((POS, n(3)), (POS, n(4)), (POS, n(-1)), (POS, n(9)))
def a_number_in_a_range(x, k):
    v = int(k)
    return v in range(5), v in range(1, 9, 2), v in range(9, 0, -3), v not in range(0), v in range(3, 3)


@case((POS, n(-3)), (POS, n(1)), (POS, n(2)), (POS, n(9)))
def min_and_max_of_an_int_and_a_float(x, k):
    v = int(k)
    return min(max(v, -2.0), 3.0), max(v, 2.0), min(2.0, v), x * max(v, 0.5), max(0, x.sum().item())
