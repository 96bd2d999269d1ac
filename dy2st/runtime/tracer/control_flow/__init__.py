"""`if`, `try`, `assert`, `raise` and recursion in converted code."""
