"""Many small functions that eager and static must treat alike; `cases.py` says how they are registered."""
