"""The page's first tables: train steps in the forms that users write, and eager mode."""

from typing import Any

from benchmarks.suite.forms import LABELS, MODEL
from benchmarks.suite.workload import OURS, Row

Results = dict[str, Any]
Measured = list[tuple[Row, Results]]
AS_WRITTEN = """\
`net = to_static(net)`, then the loss, `backward()`, `step()` and `clear_grad()` in plain Python is what most users
write: the second column. Beside it the same step as one function under `to_static`, as a Program built by hand with
`minimize`, and without a decorator. The best peer is the fastest of the forms that its own users write. The first step
is that of the second column with nothing cached; memory is its peak beside torch's, as below.
"""
EAGER = """\
No decorator: what is not converted runs like this. Rows of which an eager call takes more than the limit of a sample
are left out.
"""
COLD_STEP = 0.3


def is_ours(label: str) -> bool:
    """Say whether a side is dy2st in one of its forms."""
    return label == OURS or label.startswith((f"{OURS} ", f"{OURS},"))


def peers_of(sides: Results) -> Results:
    """Return the sides that are not ours."""
    return {label: side for label, side in sides.items() if not is_ours(label)}


def best_peer(sides: Results) -> tuple[str, float] | None:
    """Return the fastest of the others and its median; None where no other was measured."""
    others = {label: side["median"] for label, side in peers_of(sides).items() if "median" in side}
    return min(others.items(), key=lambda other: other[1]) if others else None


def steps_table(measured: Measured) -> str:
    """Write the train steps in all forms."""
    titles = ("workload", "model decorated", "whole step", "`minimize`", "eager", "best peer", "model / best peer")
    lines = [line(*titles, "first step", "memory, torch's"), line(*["---"] * 9)]
    for row, result in measured:
        sides = result["sides"]
        if LABELS[MODEL] not in sides:
            continue
        model, best = sides[LABELS[MODEL]], best_peer(sides)
        forms = [time(sides.get(label)) for label in ("dy2st model", "dy2st", "dy2st minimize", "dy2st eager")]
        peer = f"{best[0]} {seconds(best[1])}" if best else ""
        ratio = two_digits(model["median"] / best[1]) if best and "median" in model else ""
        cold = seconds(model["cold"]) if "cold" in model else ""
        memory = f"{megabytes(model.get('peak_memory'))}, {megabytes(sides.get('torch', {}).get('peak_memory'))}"
        lines.append(line(row.title, *forms, peer, ratio, cold, memory.strip(", ")))
    return "\n".join([AS_WRITTEN, *lines]) + "\n"


def eager_table(measured: Measured) -> str:
    """Write eager mode beside torch's."""
    lines = [line("workload", "dy2st eager", "torch eager", "ours / torch's"), line(*["---"] * 4)]
    for row, result in measured:
        ours, torch = (result["sides"].get(label, {}).get("median") for label in ("dy2st eager", "torch"))
        if ours is not None:
            shown = (seconds(torch), two_digits(ours / torch)) if torch else ("", "")
            lines.append(line(row.title, seconds(ours), *shown))
    return "\n".join([EAGER, *lines]) + "\n"


def missed(measured: Measured) -> list[str]:
    """List the rows on which the forms that users write miss their goals."""
    found: list[tuple[float, str]] = []
    for row, result in measured:
        sides = result["sides"]
        model, eager = (sides.get(label, {}) for label in ("dy2st model", "dy2st eager"))
        best, torch = best_peer(sides), sides.get("torch", {}).get("median")
        goal = row.goal_of_model
        if best and "median" in model and model["median"] > goal * best[1]:
            ratio = model["median"] / best[1]
            text = f"- {row.title}, model decorated: {ratio:.2f}x, goal {goal:g}x"
            found.append((ratio / goal, f"{text}: {seconds(model['median'])} beside {best[0]}'s {seconds(best[1])}"))
        if model.get("cold", 0.0) > COLD_STEP:
            text = f"- {row.title}, model decorated: first step {seconds(model['cold'])}, goal {seconds(COLD_STEP)}"
            found.append((model["cold"] / COLD_STEP, text))
        if torch and eager.get("median", 0.0) > torch:
            text = f"- {row.title}, eager: {eager['median'] / torch:.2f}x torch's"
            found.append((eager["median"] / torch, f"{text}: {seconds(eager['median'])}, {seconds(torch)}"))
    return [text for _, text in sorted(found, key=lambda item: -item[0])]


def time(side: Results | None) -> str:
    """Write a median; nothing where there is none."""
    return seconds(side["median"]) if side and "median" in side else ""


def seconds(value: float) -> str:
    """Write a time with a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if abs(value) >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-9:.3g} ns"


def two_digits(value: float | None) -> str:
    """Write a ratio; nothing where there is none."""
    return "" if value is None else f"{value:.2g}"


def line(*cells: str) -> str:
    """Write a line of a table."""
    return f"| {' | '.join(cells)} |"


def megabytes(size: int | None) -> str:
    """Write a size; nothing where it is unknown."""
    return f"{size / 1e6:.0f} MB" if size else ""
