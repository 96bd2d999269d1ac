"""Operators: the face of a Program's operations that Paddle users know, with types such as `conv2d`."""

from __future__ import annotations

from typing import Any

from dy2st.ir.location import Location
from dy2st.ir.program import Operation, Value
from dy2st.ir.types import TensorType
from dy2st.ops.nn.conv import Conv, ConvInputGrad, ConvWeightGrad
from dy2st.ops.nn.pooling import AvgPool, MaxPool


class Operator:
    """One operation of a Program."""

    def __init__(self, operation: Operation):
        self.operation = operation

    @property
    def type(self) -> str:
        """The name of the op; convolution and pooling end in the number of their axes, as in `conv2d`."""
        name, op = self.operation.name, self.operation.op
        kind = self.operation.operands[0].type if self.operation.operands else None
        if isinstance(op, (Conv, ConvInputGrad, ConvWeightGrad, MaxPool, AvgPool)) and isinstance(kind, TensorType):
            return f"{name}{kind.rank - 2}d"
        return name

    @property
    def location(self) -> Location | None:
        """The user's line that it comes from."""
        return self.operation.location

    @property
    def attr_names(self) -> list[str]:
        """The names of its attributes."""
        return list(self.operation.attributes)

    def attr(self, name: str) -> Any:
        """Return an attribute; ValueError where there is none of this name."""
        if name not in self.operation.attributes:
            raise ValueError(f"the operation {self.type} has no attribute {name!r}")
        return self.operation.attributes[name]

    def has_attr(self, name: str) -> bool:
        """Return whether there is an attribute of this name."""
        return name in self.operation.attributes

    @property
    def operands(self) -> list[Value]:
        """The values that it takes."""
        return list(self.operation.operands)

    @property
    def results(self) -> list[Value]:
        """The values that it makes."""
        return list(self.operation.results)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and other.operation is self.operation

    def __hash__(self) -> int:
        return hash(id(self.operation))

    def __repr__(self) -> str:
        return f"<{self.type} at {self.location}>"
