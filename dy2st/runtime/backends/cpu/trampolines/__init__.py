"""What Python does around a call that was seen before, in machine code."""
