"""What `explain()` says of a function that is split."""

from __future__ import annotations

import linecache
import types

from dy2st.jit.splitting.splitting import Splitting


def explained(splitting: Splitting, function: types.FunctionType) -> list[str]:
    """Return which lines stay Python and why, what that costs, and the parts with their Programs."""
    file = function.__code__.co_filename
    lines = [f"split into {len(splitting.parts)} parts, with Python between:"]
    for line, reason in sorted(splitting.reasons.items()):
        lines += [f"  line {line} stays Python: `{linecache.getline(file, line).strip()}`", f"    {reason}"]
    for i, part in enumerate(splitting.parts):
        first, _, last, _ = part.key
        where = f"line {first}" if first == last else f"lines {first} to {last}"
        inner = str(part.explain()).splitlines()
        lines.append(f"  part {i}, {where}: {inner[0].partition(': ')[2]}")
        lines += [f"  {line}" for line in inner[1:] if line != "  no fallback"]
    for callee in splitting.called:
        lines += [f"  called between: {line}" if not i else f"  {line}" for i, line in
                  enumerate(str(callee.explain()).splitlines())]  # fmt: skip
    cost = "each part is a call of its own, what is handed over is kept in memory, and nothing is fused across"
    return [*lines, f"  cost: {cost}; where the lines above are written with tensors, it is one Program"]
