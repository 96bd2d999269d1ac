"""The arrays that the tables use. Floats are exact in float32."""

import numpy as np

R = np.random.default_rng(0)


def floats(*shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
    """Return float64 numbers that float32 has too."""
    return R.uniform(low, high, shape).astype(np.float32).astype(np.float64)


A = floats(2, 3, low=0.2, high=0.9)
B = floats(2, 3, low=0.2, high=0.9)
C = floats(2, 3, 4)
S = floats(3, 3)
V = np.array([3.0, 1.0, 2.0, 5.0])
I = R.integers(-9, 9, (2, 3))
J = R.integers(1, 9, (2, 3))
P = np.array([True, False, True])
Q = np.array([[True, False, True], [False, False, True]])
N = np.array([1.0, np.nan, np.inf, -np.inf, 0.0])
HOLED = np.array([[1.0, np.nan, 2.0], [np.nan, 3.0, 5.0]])
ROWS = np.array([1, 0, 1])
TIES = np.array([[2.0, 1.0, 2.0, 1.0], [0.0, 0.0, 3.0, 3.0]])
