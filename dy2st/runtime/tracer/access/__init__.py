"""Attributes, items, operators, `and`, `or` and `not` in converted code; lists whose length is dynamic."""
