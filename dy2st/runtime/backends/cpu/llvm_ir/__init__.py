"""Text of LLVM IR: pieces that call each other, functions line by line, and how values of a Program stand in it."""
