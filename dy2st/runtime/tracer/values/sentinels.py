"""Keys of the side-effect log (side_effect_log.py), and what stands for nothing written."""

from __future__ import annotations

from typing import Any

Key = tuple[Any, ...]


class Missing:
    """The mark of a key that was never written."""

    def __repr__(self) -> str:
        return "<missing>"


MISSING = Missing()
