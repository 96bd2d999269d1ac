"""The reference interpreter: control flow, errors at the user's line, what leaves a run."""

import traceback
from typing import Any

import numpy as np
import pytest

import dy2st.ops  # noqa: F401  fills the registry
from dy2st import dtypes
from dy2st.ir.builder import Builder
from dy2st.ir.location import Location
from dy2st.ir.program import Program
from dy2st.ir.types import BOOL, INT, ListType, TensorType, optional
from dy2st.runtime.interpreter import evaluate
from dy2st.shapes import symbol

F32 = dtypes.float32
VEC = TensorType(F32, (symbol("N"),))
POINT = TensorType(F32, ())
