"""What every transformer works with."""
