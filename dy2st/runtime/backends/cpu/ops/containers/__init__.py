"""Native code of scalars, lists, tuples, optionals and unions."""
