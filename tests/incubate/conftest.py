"""Static mode for the length of a test, with Programs and a scope of its own."""

from collections.abc import Iterator

import pytest

import dy2st as paddle


@pytest.fixture
def main() -> Iterator[paddle.static.Program]:
    """Enter static mode with empty Programs; give the main one."""
    paddle.enable_static()
    program = paddle.static.Program()
    try:
        with (
            paddle.static.scope_guard(paddle.static.Scope()),
            paddle.static.program_guard(program, paddle.static.Program()),
        ):
            yield program
    finally:
        paddle.disable_static()
