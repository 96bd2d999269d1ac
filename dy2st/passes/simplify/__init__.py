"""Passes that remove or merge operations without a loss: folding, sharing, dead code, known patterns."""
