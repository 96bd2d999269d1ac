"""Simple Python to calls of the tracer, a statement or expression a file."""
