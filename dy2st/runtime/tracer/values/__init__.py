"""Abstract values: symbolic numbers, texts and iterables, unions, how two of them join, how objects become values."""
