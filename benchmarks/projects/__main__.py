"""Run checkouts of PaddleClas, PARL and PaddleScience with dy2st as `paddle`, beside PaddlePaddle.

    python -m benchmarks.projects DIR ... --oracle PYTHON

For each module: is it imported? For each model: does it build with the weights that PaddlePaddle gives it, are its
outputs and gradients those of PaddlePaddle, does it become a Program by default and with `full_graph`, is it saved and
loaded, do a forward and a backward in training agree with eager ones? Nothing is downloaded, and what a project prints
goes to a file beside what PaddlePaddle computed.
"""

import argparse
import json
import os
import re
import select
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.projects.cases import Case, cases_of

ROOT = Path(__file__).resolve().parents[2]
STAGES = ("import", "build", "forward", "gradients", "static", "full_graph", "save", "train")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    failed = False
    for folder in options.folders:
        project = folder.resolve()
        cases = [c for c in cases_of(project, options.every) if re.search(options.only, c["name"])]
        kept = options.kept / project.name
        kept.mkdir(parents=True, exist_ok=True)
        known = _known_by_paddle(project, kept, cases, options)
        valid = [c for c in cases if not any(known[c["name"]].values())]
        results: dict[str, dict[str, str]] = {}
        try:
            for name, stages in _results(Path(sys.executable), "dy2st", project, kept, valid, options):
                results[name] = stages
                (kept / "results.json").write_text(json.dumps(results, indent=1))
        except KeyboardInterrupt:
            print(f"interrupted: {len(valid) - len(results)} cases were not run", file=sys.stderr)
        _report(project.name, cases, known, results)
        failed |= any(reason for stages in results.values() for reason in stages.values())
    return int(failed)


def _known_by_paddle(
    project: Path, kept: Path, cases: list[Case], options: argparse.Namespace
) -> dict[str, dict[str, str]]:
    """Return what PaddlePaddle says of each case: from an earlier run where the case was the same."""
    file = kept / "paddle.json"
    before: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    same = {c["name"] for c in cases if before.get(c["name"], [None])[0] == c}
    left = [c for c in cases if c["name"] not in same]
    for name, stages in _results(options.oracle, "paddle", project, kept, left, options):
        before[name] = [next(c for c in left if c["name"] == name), stages]
        file.write_text(json.dumps(before))
    return {c["name"]: before[c["name"]][1] for c in cases}


def _results(
    python: Path, side: str, project: Path, kept: Path, cases: list[Case], options: argparse.Namespace
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the stages of each case; modules share a process, and one that dies or hangs is replaced."""
    groups: dict[str, list[Case]] = defaultdict(list)
    for case in cases:
        groups["modules" if case["kind"] == "module" else case["name"]].append(case)
    for group in groups.values():
        while group:
            done = []
            for name, stages in _process(python, side, project, kept, group, options):
                done.append(name)
                print(f"{side:6} {name}: {_first(stages) or 'ok'}"[:220], file=sys.stderr, flush=True)
                yield name, stages
            group = [case for case in group if case["name"] not in done]


def _process(
    python: Path, side: str, project: Path, kept: Path, cases: list[Case], options: argparse.Namespace
) -> Iterator[tuple[str, dict[str, str]]]:
    paths = os.pathsep.join(map(str, (ROOT, *options.packages)))
    variables = {
        **os.environ,
        "PYTHONPATH": paths,
        "PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION": "python",
        "PARL_BACKEND": "paddle",
    }
    command = [str(python), "-m", "benchmarks.projects.side", side, str(project), str(kept)]
    log = kept / f"{side}.log"
    with (
        log.open("ab") as said,
        subprocess.Popen(
            command, cwd=ROOT, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(cases))
        process.stdin.close()
        current = cases[0]["name"]
        while True:
            ready, _, _ = select.select([process.stdout], [], [], options.limit)
            line = process.stdout.readline() if ready else None
            if line:
                message = json.loads(line)
                if "starts" in message:
                    current = message["starts"]
                    continue
                current = ""
                yield message["case"], message["stages"]
                continue
            process.kill()
            if current:
                what = (
                    f"no answer in {options.limit:.0f} s" if line is None else f"the process ended ({process.wait()})"
                )
                yield current, {"process": what}
            return


# ---- the report --------------------------------------------------------------------------------------------------
def _first(stages: dict[str, str]) -> str:
    return "; ".join(f"{stage}: {reason}" for stage, reason in stages.items() if reason)


def _report(
    project: str, cases: list[Case], known: dict[str, dict[str, str]], results: dict[str, dict[str, str]]
) -> None:
    print(f"\n{project}: {len(cases)} cases, of which PaddlePaddle runs {len(results)}\n")
    print("| stage | cases | hold |\n|---|---|---|")
    causes: dict[str, list[str]] = defaultdict(list)
    for stage in (*STAGES, "process"):
        of = [c["name"] for c in cases if c["name"] in results and _has(c, stage)]
        held = [name for name in of if results[name].get(stage) == ""]
        if stage != "process":
            print(f"| {stage} | {len(of)} | {len(held)} |")
        for name in of:
            if reason := results[name].get(stage, ""):
                causes[f"{stage}: {_cause(reason)}"].append(f"{name}: {reason}")
    for cause, found in sorted(causes.items(), key=lambda item: -len(item[1])):
        print(f"\n{len(found)} x {cause}")
        for line in found[:4]:
            print(f"    {line[:400]}")
    refused = Counter(_cause(_first(known[c["name"]])) for c in cases if any(known[c["name"]].values()))
    if refused:
        print("\nnot compared, because PaddlePaddle fails as well:")
        for cause, count in refused.most_common(12):
            print(f"    {count} x {cause}")


def _has(case: Case, stage: str) -> bool:
    """Return whether a case has a stage: a training step is not saved, and a random one has no numbers of Paddle."""
    if stage == "process":
        return True
    if case["kind"] == "module" or stage == "import":
        return case["kind"] == "module" and stage == "import"
    left_out = {"save", "train"} if case.get("learns") else set[str]()
    return stage not in left_out | ({"gradients"} if case.get("random") else set[str]())


def _cause(reason: str) -> str:
    """Return what a reason has in common with others of its kind: less its place and its numbers."""
    text = re.sub(r"\[[^\[\]]*:\d+\]$", "", reason)
    text = re.sub(r"\(/?[^()\s]*:\d+\)|\d+(\.\d+)?(e[-+]?\d+)?", "N", text)
    return re.sub(r"^(ValueError: )(output|gradient|state)\b.*? (differs|is)\b", r"\1\2 \3", text)[:160]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dev.py projects", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path, metavar="DIR", help="a checkout")
    parser.add_argument("--oracle", type=Path, required=True, metavar="PYTHON", help="an interpreter with PaddlePaddle")
    parser.add_argument("--packages", type=Path, action="append", default=[], metavar="DIR",
                        help="packages that projects import, for both sides; what is not there is a stub")  # fmt: skip
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name matches")
    parser.add_argument("--every", action="store_true", help="every builder of PaddleClas, not one a file")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS", help="for one case (default: 300)")
    parser.add_argument("--kept", type=Path, default=ROOT / "build" / "projects", help="what PaddlePaddle computed")
    return parser


__all__ = ["main"]
if __name__ == "__main__":
    sys.exit(main())
