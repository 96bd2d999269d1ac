"""The generator of random programs: source of Python functions, run eagerly and as one Program in every way.

    python -m tests.generator --count 3000        # two processes; prints what differs, made small, and the coverage

`statements.py` and its mixins write a program from choices (`choices.py`: a seed's, or hypothesis's); `outcomes.py`
calls it and keeps all that a caller can see; `ways.py` says in which processes and by which tier; `shrinking.py` makes
one that differs small; `coverage.py` counts which op stood at which position.
"""
