"""What passes are made of: the base class, rewriting, effects of operations. No pass."""
