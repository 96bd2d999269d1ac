"""What every op is made of: the base classes, and helpers of shapes, regions and cotangents.

No op with a name but `constant`.
"""
