"""What must hold for a Program to be right for a call: signatures, guards on values, classes and settings."""
