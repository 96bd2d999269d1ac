"""A stand-in for CuPy on this machine's CPU: it refuses what a device refuses, and counts what would wait for one.

`namespace.py` is the module in the place of `cupy`, `array.py` its arrays, `memory.py` where they stand.
"""
