"""`try` around tensor control flow: what only the run raises is caught as Python catches it."""

import contextlib

from tests.jit.constructs.cases import NEG, POS, case, f, n, s, scenario


class Custom(ValueError):
    def __init__(self, text, code=0):
        super().__init__(text)
        self.code = code


@case(POS, NEG, holds="try")
def else_and_finally(x):
    y = x + 1
    try:
        y = x * 2
        if x.sum() < 0:
            raise ValueError("negative")
        y = x * 3
    except ValueError as error:
        print("caught", error, str(error), error.args)
        y = y * 100
    else:
        y = y + 0.5
        print("fine")
    finally:
        print("finally")
    return y


@case(f(1, 2), f(-1, -2), f(1, -2), holds="try")
def nested_with_raise_again(x):
    log = []
    try:
        try:
            log.append(1)
            if x[0] < 0:
                raise Custom(f"first {x[0].item()}", 3)
            log.append(2)
            if x[1] < 0:
                raise KeyError("second")
            log.append(3)
        except KeyError:
            log.append(7)
            raise
        finally:
            log.append(8)
    except (KeyError, Custom) as error:
        print("it is", error)
        return x * 10, log
    return x, log


@case(POS, NEG, holds="try")
def a_kind_by_its_base(x):
    try:
        if x.sum() < 0:
            raise Custom("own", 5)
    except LookupError:
        return x * 2
    except ValueError as error:
        return x * error.code
    return x


@case(POS, NEG, holds="try")
def a_bare_handler(x):
    try:
        assert x.sum() > 0, "low"
        y = x
    except:  # noqa: E722
        y = -x
    return y


@case(POS, NEG)
def a_kind_that_is_not_caught(x):
    try:
        if x.sum() < 0:
            raise ValueError("negative")
    except KeyError:
        return x * 2
    return x


@case(POS, NEG, holds="try")
def raised_in_a_called_function(x):
    def checked(v):
        if v.sum() < 0:
            raise Custom("below")
        return v * 2

    try:
        y = checked(x)
    except Custom:
        y = checked(-x)
    return y


@case(POS, NEG, holds="try")
def another_exception_in_the_handler(x):
    try:
        if x.sum() < 0:
            raise ValueError("inner")
    except ValueError as error:
        raise RuntimeError("outer") from error
    return x


@case(POS, NEG, f(30, 1), holds="try")
def out_of_a_while(x):
    k = 0
    try:
        while x.sum() < 100:
            x = x * 2
            k += 1
            if x[0] < -20:
                raise OverflowError
    except OverflowError:
        return x * x, k
    return x, k


@case((f(1, 2), n(3)), (f(2, -1), n(5)), (f(9, 9), n(4)), holds="try")
def in_a_loop_with_continue(x, k):
    total = x * 0
    for i in range(k):
        try:
            if total[0] > 5:
                raise StopIteration
            total = total + x * i
        except StopIteration:
            total = total - 1
            continue
        finally:
            total = total + 0.25
        total = total + 1
    return total


@case((f(1, 2), n(1)), (f(1, 2), n(5)), (f(1, 2), n(-7)), holds="try")
def index_out_of_range(x, k):
    try:
        return x[k] * 2
    except IndexError:
        return x.sum()


@case(s(2), s(0), holds="try")
def division_by_zero(x):
    try:
        y = x * (6 // int(x))
    except ZeroDivisionError:
        y = x - 1
    return y


@case((f(1, 2), n(1)), (f(1, 2), n(5)), holds="try")
def finally_of_what_an_operation_raises(x, k):
    try:
        y = x[k]
    finally:
        print("at last")
    return y


@case((f(1, 2), n(1)), (f(1, 2), n(5)), (f(7, 2), n(5)), holds="try")
def raised_again_what_an_operation_raised(x, k):
    try:
        y = x[k]
    except IndexError:
        if x[0] > 5:
            raise
        y = x[0] * 3
    return y


@case(POS, NEG, holds="try")
def return_in_every_part(x):
    try:
        if x.sum() < 0:
            raise ValueError
        return x
    except ValueError:
        return x * 2
    finally:
        print("left")


@case(POS, NEG, holds="try")
def finally_that_raises_takes_a_return_back(x):
    try:
        try:
            return x * 2
        finally:
            if x.sum() < 0:
                raise KeyError("taken back")
    except KeyError:
        pass
    return x * 5


@case(POS, NEG, holds="try")
def a_variable_only_the_handler_sets(x):
    try:
        if x.sum() < 0:
            raise ValueError
    except ValueError:
        y = x * 2
    return y


@case(POS, NEG, holds="try")
def parts_of_the_state_before_the_raise(x):
    seen = {"a": x}
    rows = [x]
    try:
        rows.append(x * 2)
        seen["b"] = x * 3
        if x.sum() < 0:
            raise ValueError
        rows.append(x * 4)
        seen["a"] = x * 5
    except ValueError:
        rows.append(x * 6)
    return rows, seen


@case(POS, NEG)
def suppressed_by_a_manager(x):
    with contextlib.suppress(KeyError):
        x = x * 2
        if x.sum() > 0:
            x = x * 3
    return x


@case(POS, NEG, holds="try")
def without_a_message(x):
    try:
        if x.sum() < 0:
            raise ValueError(x, x.sum())
    except ValueError as error:
        a, b = error.args
        return a * b
    return x


@scenario((POS,), (NEG,), (f(1, -9),), holds="cond", programs=3)
def state_before_a_raise():
    class State:
        count = 0
        last = None

    state, rows = State(), []

    def fn(x):
        state.count += 1
        rows.append(state.count)
        if x.sum() < 0:
            state.last = "bad"
            raise ValueError(f"sum {x.sum().item()}")
        state.last = "good"
        return x * state.count

    return fn, lambda: (state.count, state.last, list(rows))


@scenario((POS,), (NEG,), holds="cond")
def state_before_an_assert():
    rows = []

    def fn(x):
        rows.append(1)
        assert x.sum() > 0, "low"
        rows.append(2)
        return x

    return fn, lambda: list(rows)


@scenario((f(1, 2),), (f(-1, 2),), (f(5, 2),), holds="try", programs=2)  # a number that changes becomes an input
def state_in_a_try():
    class State:
        count = 0

    state = State()

    def fn(x):
        for i in range(3):
            try:
                state.count += 1
                if x[0] * i < 0:
                    raise ValueError
                state.count += 10
            except ValueError:
                state.count += 100
        return x * 1

    return fn, lambda: state.count


@scenario((POS,), (NEG,), holds="cond", programs=2)
def a_rebound_variable_before_a_raise():
    count = 0

    def fn(x):
        nonlocal count
        count += 1
        if x.sum() < 0:
            raise ValueError
        return x * 2

    return fn, lambda: count


@scenario((f(1, 2), n(0)), (f(-1, 2), n(0)), holds="cond")
def an_argument_written_before_a_raise():
    def fn(x, out):
        out.set_value(out + 7)
        if x[0] < 0:
            raise ValueError
        return x + 1

    return fn, lambda: None


@case((POS, n(3)), (NEG, n(3)), (POS, n(0)), holds="try")
def a_handler_in_a_loop_that_assigns_first(x, turns):
    out = [x]
    for i in range(turns):
        try:
            if x.sum() < i:
                raise ValueError
            out.append(x * i)
        except ValueError:
            out = [v + 1 for v in out if v.sum() > -20]
    return out


@case(POS, NEG, holds="try")
def one_list_by_two_names_leaves_a_handler(x):
    out, keep = [], None
    try:
        if x.sum() > 0:
            raise ValueError
        return 1.0
    except ValueError:
        keep = out
        out.append(x)
    return out, keep
