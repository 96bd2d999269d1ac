"""What to write instead, for refusals that are raised where only a part of the reason is known."""

from __future__ import annotations

HINTS: tuple[tuple[str, str], ...] = (
    ("made inside of a branch or loop is used after it", "make it before the branch or loop"),
    ("has different lengths on two paths", "give it the same length on both, or keep its items in a list of their own"),
    (
        "change their type inside of a loop",
        "keep elements of one dtype and rank in the list: astype(), reshape()",
    ),
    ("of more than", "let the paths give values of fewer kinds: the same dtype, rank and Python type"),
    ("none of the alternatives", "give it values of the same kinds on every path"),
    ("a deque with a greatest length", "make it before the branch or loop, or drop its oldest items yourself"),
    ("how many random numbers", "draw the numbers before the branch or loop, and choose among them in it"),
    (
        "that only the run will tell",
        "go through it with `for`, or put its tensors together: paddle.stack, concat",
    ),
    ("asked for more after a loop", "collect its values in a list first"),
    ("how far a generator has come", "collect its values in a list first"),
    ("whose length only the run will tell", "build a new list in a `for` loop, or use a tensor"),
    ("of a container that is one of several", "go through each of the containers in the branch that has it"),
    ("written into a detached tensor", "write into a clone of it"),
    ("unpacked into a starred target", "unpack it in the branches, where it is known"),
    ("belongs to another Program", "return such a tensor from the function that computes it, and pass it on"),
    (
        "is declared as any extent",
        "declare it as one number in the InputSpec, or use operations on tensors, which take any extent",
    ),
    ("tells the extent", "take the extent from the tensor that has it: x.shape[i]"),
    ("the gradient of the argument", "call clear_grad() on it before"),
    ("that is a NumPy array is written", "give the function a tensor"),
    ("share memory", "give the function a clone of one"),
    ("a value of a trace of its body", "keep it in a variable that is assigned before the `try`"),
    ("changed by code that is not converted", "change it in the function itself, or after the call"),
    ("is a view that was written", "return a clone of it"),
    ("an iterator leaves the function", "return a list"),
    (
        "that holds tensors of the Program leaves",
        "return its tensors, or a list, dict or object of a class of your own",
    ),
    ("the trace also reads a view", "keep one of the two, and take the view in the function"),
    ("that is an argument leaves the function", "return what is in it"),
    ("its source is not kept", "write the function in a file, or mark it with paddle.jit.not_to_static"),
    ("is itself one of several texts", "write the text in the branch that chooses what it names"),
    ("cannot be joined", "give it a value of the same kind on both ways, assigned before the branch"),
    ("cannot be carried", "give it a value of the same kind in every turn, assigned before the loop"),
)
"""Part of a message, and what to write instead; the first one that fits counts."""

OTHERWISE = "call this outside of the function, or mark the function that does it with paddle.jit.not_to_static"


def hint_for(reason: str) -> str:
    """Return what to write instead of what is refused for a reason.

    >>> hint_for("an iterator leaves the function, which no Program can hand out")
    'return a list'
    """
    return next((hint for part, hint in HINTS if part in reason), OTHERWISE)
