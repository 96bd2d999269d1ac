"""Ops that compute each element by itself, a family a file."""
