"""A Program as a library that C calls, without Python: header, code, weights; `runtime.c` is around the code."""
