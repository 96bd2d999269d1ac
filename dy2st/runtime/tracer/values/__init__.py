"""Abstract values: symbolic numbers, texts and iterables, unions, and how two of them join."""
