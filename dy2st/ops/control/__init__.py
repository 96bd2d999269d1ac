"""Ops of control flow and of containers: cond, loops, try, lists, tuples, optionals, scalars."""
