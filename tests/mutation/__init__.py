"""Mutation testing: one rule of the source is changed at a time, and the suite must notice.

    python -m tests.mutation --count 50 --seed 1       # 50 changes, a line each; survivors at the end

`mutants.py` lists what can be changed in a file, `judging.py` runs the tests that are nearest to it first.
"""
