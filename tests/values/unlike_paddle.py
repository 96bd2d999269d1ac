"""Where a row wants something else than Paddle 3.3 gives, and why."""

from tests.values.row import Row

REASONS = {
    "erfinv": "NaN at infinity, outside of the domain; Paddle gives infinity",
    "sinc": "NaN at infinity and NaN, as NumPy; Paddle gives 1",
    "hypot": "infinity where a side is infinite, and no overflow, as C and NumPy",
    "logaddexp": "the common value of two equal infinities, as NumPy; Paddle gives NaN",
    "heaviside": "NaN of NaN, as NumPy",
    "isclose": "infinity is close to itself alone, as NumPy",
    "logsumexp": "minus infinity of minus infinities, as SciPy; Paddle gives NaN",
    "histogram_bin_edges": "edges in the dtype of the input; Paddle gives float32",
    "instance_norm": "`use_input_stats=False` takes the running statistics; Paddle always takes those of the input",
    "relu": "NaN of NaN; Paddle gives 0",
    "TripletMarginWithDistanceLoss": "the layer calls its `distance_function`; Paddle's forgets it",
    "quantile": "NaN of nothing, as the median has it; Paddle gives 0",
    "frexp": "exponent 0 for infinity and NaN, as C",
    "as_strided": "`offset` counts elements; Paddle's counts bytes",
    "scale": "`act` holds in place too",
}
"""By the name of the function; forms of it (methods, in place) differ in the same way."""


def reason(row: Row) -> str:
    """Return why Paddle may differ from a row; empty where it should not."""
    return REASONS.get(row.name.split(".")[-1].removesuffix("_"), "")
