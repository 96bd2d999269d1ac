"""`while` and `for` in converted code: what a loop carries, and generators."""
