"""Calls in converted code: builtins, methods of containers, the standard library, iteration, `with`, `match`."""
