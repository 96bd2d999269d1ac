"""What every family of functions needs of its arguments: conversions, defaults, lists, assignment.

No function of the public face.
"""
