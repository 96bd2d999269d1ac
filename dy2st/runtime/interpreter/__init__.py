"""Runs a Program operation by operation: the reference evaluator, and the planned one with registers."""
