"""What is done with parts of a product as they are finished, while they are in cache: a function and what it takes.

A row of memory has the function, how many picoseconds it takes an element, and what it takes beside:

    void @function(ptr row, i64 top, i64 bottom, i64 first, i64 last)

It is called for parts of the result, rows `top` to `bottom` and columns `first` to `last`, each element once; in any
order, by any thread. Where nothing is to be done, the row is null.
"""

from __future__ import annotations

from dy2st.runtime.backends.cpu.llvm_ir.function_builder import LLVMFunction
from dy2st.runtime.backends.cpu.llvm_ir.int_math import Integer, plus

AFTER = (("ptr", "%after"), ("i64", "%top"))
"""The parameters of products for it; `top` is the number that their first row has in the whole result."""
NOTHING = "ptr null, i64 0"
"""The operands of a product that nothing follows."""
FUNCTION, COST, OPERANDS = 0, 8, 16
"""Where they stand in the row."""


def is_wanted(f: LLVMFunction, after: str = "%after") -> str:
    """Write whether anything is to be done."""
    return f.value(f"icmp ne ptr {after}, null")


def finished(
    f: LLVMFunction, rows: tuple[Integer, Integer], columns: tuple[Integer, Integer], after: str = "%after",
    top: str = "%top",
) -> None:  # fmt: skip
    """Write that a part is finished: from the first row to the last, from the first column to the last."""
    with f.when(is_wanted(f, after), "finished"):
        numbers = [plus(f, top, n) for n in rows] + [str(n) for n in columns]
        f.call("void", f.load("ptr", f.offset(after, FUNCTION)), f"ptr {after}", *(f"i64 {n}" for n in numbers))


def cost_after(f: LLVMFunction) -> str:
    """Write how many picoseconds an element takes afterwards."""
    cost = f.slot("i64")
    f.store("i64", "0", cost)
    with f.when(is_wanted(f), "more"):
        f.store("i64", f.load("i64", f.offset("%after", COST)), cost)
    return f.load("i64", cost)
