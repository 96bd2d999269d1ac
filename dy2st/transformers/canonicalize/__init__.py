"""Python to simpler Python: jumps, returns, comprehensions, generators, `match`. No call of the tracer yet."""
