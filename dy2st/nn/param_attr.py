"""What a caller says of a parameter that a layer will create."""

from __future__ import annotations

from typing import Any

from dy2st.nn.initializer.base import Initializer
from dy2st.regularizer import WeightDecayRegularizer
from dy2st.runtime.eager.tracked_settings import Settable


class ParamAttr(Settable):
    """Say a parameter's name, initial values, learning-rate factor, regularizer, whether it is trained or clipped."""

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: WeightDecayRegularizer | None = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ):
        for what, value, kind in (
            ("name", name, str), ("initializer", initializer, Initializer),
            ("regularizer", regularizer, WeightDecayRegularizer),
        ):  # fmt: skip
            if value is not None and not isinstance(value, kind):
                raise TypeError(f"ParamAttr: {what} must be a {kind.__name__} or None, not {type(value).__name__}")
        self.name = name
        self.initializer = initializer
        self.learning_rate = float(learning_rate)
        self.regularizer = regularizer
        self.trainable = bool(trainable)
        self.do_model_average = bool(do_model_average)
        self.need_clip = bool(need_clip)

    def settings(self) -> dict[str, Any]:
        """Return what the parameter itself keeps of this, by its names there."""
        names = ("trainable", "regularizer", "learning_rate", "need_clip", "do_model_average")
        return {name: getattr(self, name) for name in names}

    @staticmethod
    def _to_attr(arg: Any) -> ParamAttr | bool | None:
        """Return what an argument of a layer stands for: a list for one of attrs, False for no parameter."""
        if isinstance(arg, (list, tuple)):
            return [ParamAttr._to_attr(a) for a in arg]  # type: ignore[return-value]
        return arg if arg is False else as_attr(arg)

    def __repr__(self) -> str:
        return (
            f"ParamAttr(name={self.name!r}, initializer={self.initializer!r}, learning_rate={self.learning_rate}, "
            f"trainable={self.trainable})"
        )


def as_attr(spec: Any) -> ParamAttr | None:
    """Return the ParamAttr that `spec` stands for: an attr, a name, an initializer, a regularizer, None or True.

    False stands for no parameter at all: the answer is None. TypeError for anything else.
    """
    if spec is None or spec is True:
        return ParamAttr()
    if spec is False:
        return None
    if isinstance(spec, ParamAttr):
        return spec
    if isinstance(spec, str):
        return ParamAttr(name=spec)
    if isinstance(spec, Initializer):
        return ParamAttr(initializer=spec)
    if isinstance(spec, WeightDecayRegularizer):
        return ParamAttr(regularizer=spec)
    raise TypeError(
        f"a parameter attribute is a ParamAttr, a name, an initializer, a regularizer or a bool, not {spec!r}"
    )
