"""Write docs/performance.md from results that were kept: nothing is measured here."""

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.suite import ROWS
from benchmarks.suite.ceilings import limit
from benchmarks.suite.loaded import LOADED
from benchmarks.suite.measure import SINGLE
from benchmarks.suite.report_forms import (
    best_peer,
    eager_table,
    line,
    megabytes,
    missed,
    peers_of,
    seconds,
    steps_table,
    two_digits,
)
from benchmarks.suite.workload import ABSENT, OURS, Row

COLUMNS = {
    SINGLE: "1 thread",
    "torch": "torch",
    "torch compile": "torch compile",
    "jax": "jax",
    "onnxruntime": "onnxruntime",
    "paddle": "paddle",
    "paddle to_static": "paddle to_static",
    "numpy": "NumPy",
}
HOW = """\
`python3 dev.py bench --peers --write` makes this page. Each side has a process of its own, with as many threads as its
package takes; samples are taken in turn; a figure is the median. What the first three calls return was compared with
ours before. Weights and inputs are the same for all; train steps update parameters in place. What becomes of rows
beside busy processes stands in [busy.md](busy.md).
"""
COSTS = """\
A first call begins with the imported package and the arrays: layers are made, the source is converted, traced and
compiled. LLVM's library is read from the disk before: where a part of it is there only, as after a start of the system,
loading it takes 170 to 260 ms, not 30. What `import dy2st` takes stands in [benchmarks.md](benchmarks.md). Memory is
the peak of the process beyond what it took once the package was imported and the arrays were there. The limit is what
the arithmetic and the bytes take at the measured ceilings.
"""
BOUNDS = """\
### What bounds the rows beside a copy

Instructions, not memory. Measured on 2026-11-22 on a Zen 4 at 3.7 GHz, in cycles for one instruction on 16 float32:
products and comparisons 1, permutations 1, sums, maxima and shifts 1, e**x's power of 2 2, logic 0.5, stores 2. A
product beside a sum takes no more than alone, beside a permutation 1.34 for both, and all together two instructions a
cycle. A copy of 33.5 MB takes 320 to 356 us on two threads, which is 10 cycles for 16 numbers; 0.8 of its speed, 12.5.
For 16 numbers, two threads as the least of many runs on a busy machine:

| row | products, permutations, sums, logic | cycles at least | of a copy at most | cycles in the cache | two threads |
| --- | --- | --- | --- | --- | --- |
| softmax | 8, 1, 8, 2 | 9.5 | 1 | 16 | 600 us: 0.59 |
| gelu(layer_norm), normal weights | 10.25, 8, 9, 1.75 | 14.5 | 0.69 | 31 | 1.15 ms: 0.31 |
| 12 operations, three of them tanh | 18, 21, 18, 6 | 31.5 | 0.32 | 52 | 1.87 ms: 0.19 |

So 0.8 is out of reach of the last two with these formulas. What is above the least is waiting: tanh alone, with a copy,
takes 12.9 cycles, and 11.1 to 12.4 in hand-written assembly, where its instructions need 9. Vectors of 2 or 8 registers
at once instead of 4, chains of vectors side by side, sums of polynomials in pairs, and asking for the next row took as
long or longer.
"""
Results = dict[str, Any]
COLD, FROM_DISK = 0.25, 0.03
"""Seconds of a first call with nothing cached, and from the disk cache; a row may have a goal of its own."""


def ratio(sides: Results) -> float | None:
    """Return our median over the best peer's."""
    best = best_peer(sides)
    return sides[OURS]["median"] / best[1] if best and "median" in sides[OURS] else None


def processor_ratio(sides: Results) -> float | None:
    """Return our processor time, of all threads, over the least of a peer; other load of the machine counts less."""
    others = [side["processor"] for side in peers_of(sides).values() if "processor" in side]
    return sides[OURS]["processor"] / min(others) if others and "processor" in sides[OURS] else None


def page(results: Results) -> str:
    """Write the whole page."""
    measured = [(row, results["rows"][row.name]) for row in ROWS if row.name in results["rows"]]
    parts = [
        "# Performance\n",
        _where(measured),
        "![Our time over the best peer's, row by row](performance.svg)\n",
        "## Train steps as users write them\n",
        steps_table(measured),
        "## Whole steps and inference under `to_static`\n",
        _times(measured),
        "## Eager mode\n",
        eager_table(measured),
        "## Where we are behind\n",
        _behind(measured, results.get("ceilings")),
        BOUNDS,
        LOADED,
        "## First call, memory, physical limits\n",
        _costs(measured, results.get("ceilings")),
        "## Growth\n",
        _growth(results.get("growth", {})),
    ]
    return "\n".join(parts)


def _where(measured: list[tuple[Row, Results]]) -> str:
    """Say when and on what the figures were taken, and how."""
    lines = []
    for facts in {str(row["machine"]): row["machine"] for _, row in measured}.values():
        days = sorted({row["taken"] for _, row in measured if row["machine"] == facts})
        lines.append(f"Taken {' to '.join(dict.fromkeys((days[0], days[-1])))}: {_listed(facts)}.\n")
    loads = [row["load"] for _, row in measured if "load" in row]
    if loads:
        lines.append(
            f"Load average of the machine meanwhile: {min(loads)} to {max(loads)}, this measurement included.\n"
        )
    lines.append(HOW)
    return "\n".join(lines)


def _listed(facts: dict[str, str]) -> str:
    words = {"cores": "{} cores", "system": "{}", "python": "Python {}"}
    return ", ".join(words[key].format(value) if key in words else f"{key} {value}" for key, value in facts.items())


def _times(measured: list[tuple[Row, Results]]) -> str:
    lines = [
        line("workload", OURS, *COLUMNS.values(), "ours / best peer", "goal", "processor time, ours / best"),
        line(*["---"] * (5 + len(COLUMNS))),
    ]
    for row, result in measured:
        sides = result["sides"]
        of_best = ratio(sides)
        bound = f"{row.goal:g}x" + (f", {seconds(row.limit)}" if row.limit else "")
        bound += f", {row.of_copy:g} of a copy" if row.of_copy else ""
        cells = (_time(sides.get(label), label in row.sides or label == SINGLE) for label in (OURS, *COLUMNS))
        lines.append(line(row.title, *cells, two_digits(of_best), bound, two_digits(processor_ratio(sides))))
    return "\n".join(lines) + "\n\n" + _notes(measured)


def _time(side: Results | None, has_form: bool) -> str:
    """Write a median, or why there is none: in a word, which the notes explain."""
    if side is None:
        return "" if not has_form else "not measured"
    if "missing" not in side:
        return seconds(side["median"])
    why = side["missing"]
    words = {"FAILED": "fails", "DIFFERS": "differs", ABSENT: ABSENT}
    return next((word for beginning, word in words.items() if why.startswith(beginning)), why)


def _notes(measured: list[tuple[Row, Results]]) -> str:
    """List what failed or differs, with the reason."""
    lines = [
        f"- {row.title}, {label}: {side['missing'].replace('FAILED: ', '').replace('DIFFERS', 'differs')}"
        for row, result in measured
        for label, side in result["sides"].items()
        if side.get("missing", "").startswith(("FAILED", "DIFFERS"))
    ]
    return "\n".join(["An empty cell: the package has no form of the job.\n", *lines]) + "\n"


def _behind(measured: list[tuple[Row, Results]], ceilings: Results | None) -> str:
    """List the rows whose goal is missed, the worst one first."""
    behind: list[tuple[float, str]] = []
    for row, result in measured:
        sides = result["sides"]
        if "median" not in sides[OURS]:
            behind.append((float("inf"), f"- {row.title}: no figure of ours: {sides[OURS]['missing']}"))
            continue
        best, of_best = best_peer(sides), ratio(sides)
        if best and of_best and of_best > row.goal:
            figures = f"{seconds(sides[OURS]['median'])} beside {best[0]}'s {seconds(best[1])}"
            behind.append((of_best / row.goal, f"- {row.title}: {of_best:.2f}x, goal {row.goal:g}x: {figures}"))
        elif row.limit and sides[OURS]["median"] > row.limit:
            text = f"- {row.title}: {seconds(sides[OURS]['median'])}, goal {seconds(row.limit)}"
            behind.append((sides[OURS]["median"] / row.limit, text))
        elif row.of_copy and ceilings and (share := _of_copy(row, sides[OURS]["median"], ceilings)) < row.of_copy:
            peer = f"; {of_best:.2f}x the best peer" if of_best else ""
            text = f"- {row.title}: {share:.2f} of a copy's speed, goal {row.of_copy:g}{peer}"
            behind.append((row.of_copy / share, text))
    behind.sort(key=lambda item: -item[0])
    texts = [*(text for _, text in behind), *missed(measured)]
    calls = "\n".join(texts) if texts else "In the time of a call nowhere: every row is within its goal."
    late = [_late(measured, "cold", lambda row: row.first_call), _late(measured, "first", _from_disk)]
    return f"{calls}\n\nFirst calls over their goals, with nothing cached: {late[0]}. From the disk cache: {late[1]}.\n"


def _of_copy(row: Row, median: float, ceilings: Results) -> float:
    """Return how fast a row is beside a copy of its operands and results."""
    return (limit(row.at_least, ceilings) or 0.0) / median


def _from_disk(row: Row) -> float:
    return FROM_DISK if row.first_call <= COLD else row.first_call


def _late(measured: list[tuple[Row, Results]], which: str, goal: Callable[[Row], float]) -> str:
    """Return how many rows have a first call that takes longer than its goal, and their names with the times."""
    firsts = [(row, result["sides"][OURS].get(which) or 0.0) for row, result in measured]
    over = [f"{row.name} {seconds(first)}" for row, first in firsts if first > goal(row)]
    return f"{len(over)} of {len(firsts)}" + (f" ({', '.join(over)})" if over else "")


def _costs(measured: list[tuple[Row, Results]], ceilings: Results | None) -> str:
    titles = "workload", "first call, nothing cached", "from the disk cache", "goals", "best peer's first call"
    lines = [line(*titles, "memory of ours", "least of a peer", "time over the limit"), line(*["---"] * 8)]
    for row, result in measured:
        ours, sides = result["sides"][OURS], result["sides"]
        if "median" not in ours:
            continue
        best = best_peer(sides)
        least = ceilings and limit(row.at_least, ceilings)
        peaks = [side["peak_memory"] for side in peers_of(sides).values() if side.get("peak_memory")]
        lines.append(
            line(
                row.title,
                seconds(ours["cold"]),
                seconds(ours["first"]),
                f"{seconds(row.first_call)}, {seconds(_from_disk(row))}",
                seconds(sides[best[0]]["first"]) if best else "",
                megabytes(ours["peak_memory"]),
                megabytes(min(peaks)) if peaks else "",
                f"{ours['median'] / least:.1f}" if least else "",
            )
        )
    return "\n".join(lines) + "\n\n" + _ceilings_text(ceilings)


def _ceilings_text(ceilings: Results | None) -> str:
    lines = [COSTS]
    for count, found in (ceilings or {}).items():
        rates = list(found["bytes"].values())
        copies = f"copies of {max(rates) / 1e9:.0f} GB/s in the cache and {rates[-1] / 1e9:.0f} GB/s beyond it"
        lines.append(f"- Ceilings with {count} thread(s): {found['flops'] / 1e9:.0f} GFLOP/s; {copies}.")
    return "\n".join(lines) + "\n"


def _growth(growth: Results) -> str:
    if not growth:
        return "Not measured.\n"
    lines = [line("what grows", "from", "to", "time ~ size to the power of", "the work grows by"), line(*["---"] * 5)]
    for grown in growth.values():
        sizes = list(grown["seconds"].items())
        first, last = (f"{size}: {seconds(value)}" for size, value in (sizes[0], sizes[-1])) if sizes else ("", "")
        power = "" if grown["exponent"] is None else f"{grown['exponent']:.2f}"
        why = f" ({grown['why']})" if "why" in grown else ""
        lines.append(line(grown["title"], first, last + why, power, f"{grown['expected']:g}"))
    return "\n".join(lines) + "\n\nProcessor time of all threads; fitted over the upper half of the sizes.\n"


def ratios(results: Results) -> Iterable[tuple[str, str, float, float]]:
    """Give name, best peer, our time over the best peer's, and the goal, of each row that has them."""
    for row in ROWS:
        sides = results["rows"].get(row.name, {}).get("sides")
        of_best = ratio(sides) if sides else None
        best = best_peer(sides) if sides else None
        if of_best is not None and best is not None:
            yield row.name, best[0], of_best, row.goal
