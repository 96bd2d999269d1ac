"""Programs over many lanes at once: `vmap`, a transformation of Programs.

A block that computes something of one lane becomes operations that compute it of all lanes. `batched_value.py` says
how a value of one lane stands for all of them, `batcher.py` walks through a block, `rules.py` has what each family of
ops becomes (`indexing.py` for indices, `windows.py` for convolutions and pools, `quantized.py` for weights of
integers, `scalars.py` for Python numbers, `containers.py` for lists and optionals, `custom.py` for derivatives of a
PyLayer), `branches.py` and `loops.py` are control flow, and `lane_loop.py` is the loop over the lanes for what has no
rule.
"""
