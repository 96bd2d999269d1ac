"""The garbage collector during a run: it looks at what each test left once, and not again at every later collection.

What tests leave for good (caches, modules, reports) grows to millions of objects, and Programs are full of cycles, so a
sixth of a run was spent on going through them again and again.
"""

import gc

TESTS = 100
"""So many tests are run between two collections of all that is new."""
YOUNG, MIDDLE, NEVER = 5_000, 20, 1_000_000


class Sweeping:
    """Collects between tests, and sets aside what stays."""

    def __init__(self) -> None:
        self._tests = 0

    def begin(self) -> None:
        """Set aside what collecting the tests made; from now on only young objects are collected by themselves."""
        gc.freeze()
        gc.set_threshold(YOUNG, MIDDLE, NEVER)
        gc.enable()

    def test_ended(self) -> None:
        """Collect what the last tests left, each `TESTS` of them."""
        self._tests += 1
        if self._tests % TESTS == 0:
            gc.collect()
            gc.freeze()
