"""Python source as data: finding it, its scopes, its live variables, templates, locations, printing.

Reading order: tree (the one wrapper of gast), source (from a function to its tree), scopes, definite (which names are
surely assigned), liveness (which values are still wanted), templates, origin, unparse.
"""
