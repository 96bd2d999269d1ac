"""A Program as a library that C calls, without Python: its header, its code, its weights, an example."""
