"""What models say when trained parameters are asked for."""

from __future__ import annotations


def refuse_pretrained(pretrained: bool, name: str) -> None:
    """Raise RuntimeError where trained parameters are asked for: nothing is downloaded."""
    if pretrained:
        raise RuntimeError(
            f"{name}(pretrained=True): nothing is downloaded here; get the file yourself, then "
            "model.set_state_dict(paddle.load(path))"
        )
