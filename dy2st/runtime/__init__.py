"""Whatever runs: tensors, tape, dispatch, the interpreter and its plans, and what converted code calls."""
