"""What README.md and docs/ show runs, prints what they say, and names files that are there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FROM_SCRATCH = ROOT / "docs" / "from-scratch.md"
SHOWN = [
    ROOT / "README.md",
    FROM_SCRATCH,
    ROOT / "docs" / "from-torch.md",
    ROOT / "docs" / "quantization.md",
    ROOT / "docs" / "debugging.md",
    *sorted((ROOT / "docs").glob("writing-*.md")),
]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("backend", ["native", "interpreter"])
@pytest.mark.parametrize("page", SHOWN, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_says(page: Path, backend: str, tmp_path: Path) -> None:
    """They do so with every Program called four times beside eager mode."""
    source, output = "\n\n".join(blocks(page, "python")), "".join(blocks(page, "text"))
    example = tmp_path / "settle.py"  # to_static reads the source of what it converts
    example.write_text(source)
    library = {**os.environ, "PYTHONPATH": str(ROOT), "DY2ST_VERIFY_CALLS": "1", "DY2ST_BACKEND": backend}
    done = subprocess.run([sys.executable, str(example)], env=library, capture_output=True, text=True, timeout=60)
    assert source
    assert (done.stderr, done.stdout.replace(str(tmp_path), "/home/you")) == ("", output)


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler is installed")
def test_a_layer_becomes_a_c_program(tmp_path: Path) -> None:
    (train,), (main,), (commands,), (printed,) = (blocks(ROOT / "README.md", kind) for kind in ("py", "c", "sh", "txt"))
    (tmp_path / "train.py").write_text(train)
    (tmp_path / "main.c").write_text(main)
    ours = re.sub("^dy2st ", "python -m dy2st ", commands, flags=re.MULTILINE)
    paths = {"PYTHONPATH": str(ROOT), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["sh", "-ec", ours], cwd=tmp_path, env={**os.environ, **paths}, capture_output=True, text=True, timeout=120
    )
    assert (done.stderr, done.stdout) == ("", printed)


def test_packages_that_are_told_of_are_there_after_one_import() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("s*.md")]
    told = {name for page in pages for name in re.findall(r"`dy2st\.(\w+)[.(`]", page.read_text(encoding="utf-8"))}
    assert told >= {"fleets", "serving"}
    source = f"import dy2st\nfor name in {sorted(told)}: getattr(dy2st, name)"
    subprocess.run([sys.executable, "-c", source], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True, timeout=60)


def test_the_readme_s_example_is_short() -> None:
    (source,) = blocks(ROOT / "README.md", "python")
    assert len([line for line in source.splitlines() if line.strip()]) <= 15


def test_the_core_from_scratch_is_short() -> None:
    assert len(FROM_SCRATCH.read_text(encoding="utf-8").splitlines()) <= 700


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_names_is_there(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    named = re.findall(r"`((?:dy2st|tests|docs|examples|benchmarks)/[\w/.-]+)`", text)
    linked = re.findall(r"\]\(([^)#:]+)\)", text)
    missing = [path for path in named if not (ROOT / path).exists()]
    missing += [path for path in linked if not (page.parent / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_nothing_is_left_to_be_written(page: Path) -> None:
    assert not re.search(r"\b(TODO|TBD|FIXME|XXX)\b", page.read_text(encoding="utf-8"))
