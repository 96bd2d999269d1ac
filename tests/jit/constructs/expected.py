"""What does not agree yet, with the reason. A case that agrees must leave this table: the tests are strict."""

FAILURES: dict[str, str] = {}
