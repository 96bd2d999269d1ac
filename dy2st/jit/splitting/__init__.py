"""What cannot be one Program becomes several, with Python between (transformers/splitting has the source of that)."""
