"""Where a function that cannot be one Program is cut, and the run of its parts (source: transformers/splitting)."""
