"""Passes on loops: what moves out of them, what they carry, what is computed again."""
