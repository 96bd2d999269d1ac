"""Machine code that runs wherever it is copied to: elf_linker.py makes it, image_loader.py loads it."""

from __future__ import annotations

from dy2st.records import record


class NotLinkable(Exception):
    """An object holds what an image cannot."""


@record(frozen=True)
class CodeImage:
    """Machine code that runs at any address, once its slots are filled."""

    content: bytes
    writable: int
    """Where what may be written begins: data of the code's own, behind the code."""
    symbols: dict[str, int]
    """Where functions stand."""
    slots: dict[str, int]
    """Where the addresses of functions of others are to be put."""
    addresses: list[tuple[int, int]]
    """Where the addresses of places in the image are to be put, and of which places."""


Binary = CodeImage | list[bytes]
"""Machine code: an image, or object files where no image can be made of them."""
