"""What cannot be converted says why, with the user's line."""

from typing import Any

import pytest

from dy2st import transformers
from dy2st.errors import ConversionError


async def coroutine(x):
    return x


async def generator(x):
    yield x


@pytest.mark.parametrize("fn", [coroutine, generator])
def test_async_is_refused_with_its_line(fn: Any) -> None:
    with pytest.raises(ConversionError, match="an `async def` runs on an event loop") as caught:
        transformers.convert(fn)
    assert caught.value.line == fn.__code__.co_firstlineno
    assert caught.value.file == __file__


def test_no_source() -> None:
    namespace: dict[str, Any] = {}
    exec("def fn(x):\n    return x", namespace)
    with pytest.raises(ConversionError, match="made by `exec` or `eval`"):
        transformers.convert(namespace["fn"])
