"""How a corpus file registers its functions: `@case((args), (args), ...)`; `log` records the order of side effects."""

CASES: list = []
LOG: list = []


def case(*calls):
    def register(fn):
        CASES.append((fn, calls))
        return fn

    return register


def log(value, result=None):
    LOG.append(value)
    return value if result is None else result
