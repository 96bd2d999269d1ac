"""What does not agree yet, with the reason. A case that agrees must leave this table: the tests are strict."""

FAILURES: dict[str, str] = {
    "errors.try_except_of_tensor_error": "a handler cannot catch what the run raises: the function runs eagerly",
}
