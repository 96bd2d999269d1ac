"""A function cut at lines that cannot be in a Program: functions of what is between them, and the rest as it was."""
