"""Traits of ops: what passes, derivatives and backends ask of an op in place of its name. An op's class states them.

Each is a class attribute, so that asking costs what reading an attribute costs. A new op has the defaults here, which
are always right: what an op does not claim is not made use of.
"""

from __future__ import annotations

from typing import ClassVar, Literal

Monoid = Literal["", "add", "mul", "max", "min", "and", "or"]


class Traits:
    """What an op can say of itself."""

    # ---- control flow
    is_loop: ClassVar[bool] = False
    """The block runs once an iteration: values are carried from one iteration to the next."""
    is_counted: ClassVar[bool] = False
    """A loop whose number of iterations is known when it begins."""
    is_branch: ClassVar[bool] = False
    """One of two blocks runs, by the first operand."""
    is_call: ClassVar[bool] = False
    """A function of the Program runs, whose name is an attribute."""
    is_try: ClassVar[bool] = False
    """What the first block raises is caught."""
    block_names: ClassVar[tuple[str, ...]] = ()
    """What a text calls the blocks; without, they are block0, block1, ..."""
    is_raise: ClassVar[bool] = False
    """Nothing after it in its block runs."""

    # ---- effects
    may_raise: ClassVar[bool] = False
    """The op can raise: never speculated, moved across an effect, or deleted."""
    effect: ClassVar[bool] = False
    """The op does something that is seen outside (print, host callback): ordered, never deleted or merged."""
    is_hushed: ClassVar[bool] = False
    """Nobody sees the effect where a function runs once more, unseen, because a run of it has raised."""
    exchanges: ClassVar[bool] = False
    """The effect is that processes exchange tensors, all of them together: lanes of one are exchanged as one tensor."""
    raises: ClassVar[tuple[type[Exception], ...]] = (IndexError, ValueError)
    """What the op raises where it does."""
    random: ClassVar[bool] = False
    """The first two operands are the generator's seed and draw number."""
    draws_bits: ClassVar[bool] = False
    """Native code draws the very numbers that NumPy does, not all but the last digit of them."""
    random_elementwise: ClassVar[bool] = False
    """Random, and each element is drawn by itself."""

    # ---- memory
    is_view: ClassVar[bool] = False
    """The result shares the first operand's memory in eager mode; then the op has `unview`."""
    is_identity: ClassVar[bool] = False
    """The result is the first operand, with other properties."""
    renames: ClassVar[bool] = False
    """In native code the result is the first operand's memory under another name."""
    rewraps: ClassVar[bool] = False
    """The result is the first operand, put into a variant or taken out of it."""
    moves_elements: ClassVar[bool] = False
    """Results are lists or tuples with elements of the operands, or such elements, whatever these are."""
    writes: ClassVar[int | None] = None
    """The number of the operand that is written into part of the first one."""
    fresh: ClassVar[bool] = False
    """Results are always new arrays that share no memory with operands, so a plan may write over them when they die."""

    # ---- what is computed
    is_scalar: ClassVar[bool] = False
    """The op computes with Python numbers, or makes a tensor of one."""
    tensor_op: ClassVar[str] = ""
    """Of an op on Python numbers: the op on tensors that does the same to elements."""
    compares: ClassVar[Literal["", "lt", "le", "eq", "ne", "gt", "ge"]] = ""
    """How the two operands are compared; the result says whether that holds."""
    adds_second: ClassVar[Literal[-1, 0, 1]] = 0
    """The result is the first operand and (1) or less (-1) the second."""
    is_conjunction: ClassVar[bool] = False
    """The result is true where both operands are."""
    converts: ClassVar[bool] = False
    """The result is the operand's number, or numbers, as another type has them."""
    elementwise: ClassVar[bool] = False
    """Operands have one shape in the IR (the builder broadcasts them) and so has the result."""
    commutative: ClassVar[bool] = False
    """The operands may be exchanged, to the same bits."""
    is_constant: ClassVar[bool] = False
    """The result is the attribute `value`."""
    is_reshape: ClassVar[bool] = False
    """The result has the first operand's elements in the same order, under another shape."""
    is_data_movement: ClassVar[bool] = False
    """Shapes and attributes alone say where elements of the operands go; none is computed."""
    is_gather: ClassVar[bool] = False
    """The result has elements of the first operand, at places that the other operands or an attribute name."""
    accumulates: ClassVar[bool] = False
    """The second operand is added to the first, at places: the cotangent of a gather."""
    splat: ClassVar[int | None] = None
    """The number that all elements of the result are; None for an op where that is not so."""
    is_contraction: ClassVar[bool] = False
    """Products of many elements are added up: matrix products, convolutions, attention."""
    superlinear: ClassVar[bool] = False
    """One may take a second: products, windows, sorting, factorizations cost many times what their elements count."""
    native_in_eager: ClassVar[bool] = False
    """Eager mode runs native code on large arrays: NumPy takes several passes, or has no function for it."""
    differentiable: ClassVar[bool] = True
    monoid: ClassVar[Monoid] = ""
    """What a reduction combines elements by: add, mul, max, min, and, or."""
    of_last_axes: ClassVar[bool] = False
    """The op works on the last axes of its operands; those in front are a batch."""
    tells_structure: ClassVar[bool] = False
    """The result is a number that follows from how a container is built, not from what is in it."""
    places: ClassVar[slice] = slice(0)
    """The operands that are places, as far as they are numbers."""

    # ---- costs and precision
    rematerializes: ClassVar[bool] = False
    """Without arithmetic on elements: it costs less to compute the result again than to store it."""
    nanoseconds: ClassVar[float | None] = None
    """What an element of the result costs in NumPy, where that is more than what memory takes."""
    picoseconds: ClassVar[int] = 0
    """What one vector of the result costs in native code, where that is more than what a long function does."""
    computes_in: ClassVar[tuple[str, str] | None] = None
    """A dtype of operands, and the wider one that the op computes in then."""
    amp: ClassVar[Literal["", "low", "high"]] = ""
    """Under automatic mixed precision the op runs in float16 (low), in float32 (high), or as its operands come."""
    long_latency: ClassVar[bool] = False
    """One instruction of many cycles: a division, a root."""
    formula: ClassVar[str] = ""
    """The module of the native math library that has a formula of the op's name, for operands of floats."""
