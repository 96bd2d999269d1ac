"""Everything a developer does with this checkout, as one command that needs only Python's standard library.

    python3 dev.py demo      # train, convert, save, reload and draw a model
    python3 dev.py test      # the whole test suite

Every subcommand first sets up what it needs: a virtual environment in `.venv` with the exact packages of
`requirements.lock`. When that is up to date nothing is installed and no network is used.
"""

import sys

if sys.version_info < (3, 11):  # noqa: UP036 (the older Python that starts this file by mistake is told so)
    sys.exit("dy2st needs Python 3.11 or newer, and this is Python " + sys.version.split()[0])

import argparse
import ast
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
STAMP = VENV / "dy2st-stamp"
PYTHON = VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
LOCKED_GROUPS = ("build", "test", "check", "examples")
RECIPES = ("digits_cnn", "cart_ppo", "word_vectors", "grammar_lstm")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the command line names; return its exit status."""
    options, rest = _parser().parse_known_args(arguments)
    if rest and options.command not in (demo, test, bench, projects):
        _parser().error(f"unrecognized arguments: {' '.join(rest)}")
    options.rest = rest
    return options.command(options)


def setup(options: argparse.Namespace) -> int:
    """Make `.venv` and install the locked packages; do nothing when both are up to date."""
    del options
    if ensure_environment():
        print(f"ready: {PYTHON.relative_to(ROOT)}")
    else:
        print(f"up to date: {PYTHON.relative_to(ROOT)}")
    return 0


def demo(options: argparse.Namespace) -> int:
    """Run examples/demo.py, or the recipe that is named; further arguments go to the recipe."""
    if options.list:
        for name in RECIPES:
            text = ast.get_docstring(ast.parse((ROOT / "examples" / f"{name}.py").read_text())) or ""
            print(f"{name:16} {text.splitlines()[0]}")
        return 0
    if options.name not in ("demo", *RECIPES):
        _parser().error(f"there is no recipe {options.name}: {', '.join(RECIPES)}")
    ensure_environment()
    return _python(f"examples/{options.name}.py", *options.rest)


def test(options: argparse.Namespace) -> int:
    """Run the tests on two processes, less what takes minutes; further arguments go to pytest.

    The second of two runs on one cache begins with all that the first one has kept.
    """
    ensure_environment()
    selection = {"fast": ("--fast",), "soak": ("-m", ""), "": ()}[options.selection]
    processes = ("--gpu",) if options.gpu else ("-n", "2")
    command = ("-m", "pytest", *processes, *selection, *options.rest)
    if not options.twice:
        return _python(*command)
    with tempfile.TemporaryDirectory(prefix="dy2st-twice-") as cache:
        os.environ["DY2ST_CACHE_DIR"] = cache
        return _python(*command) or _python(*command)


def tests_of(options: argparse.Namespace) -> int:
    """Print which tests are of a module (by name or path), as paths for pytest; without one, a table of all modules."""
    ensure_environment()
    return _python("-m", "tests.tests_of", *options.modules)


def check(options: argparse.Namespace) -> int:
    """Run ruff, basedpyright and the tests of layers and counts; print a line for each and what it found."""
    del options
    ensure_environment()
    parts = {
        "ruff check": ("-m", "ruff", "check", "."),
        "ruff format": ("-m", "ruff", "format", "--check", "."),
        "basedpyright": ("-m", "basedpyright"),
        "layering": ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_layering.py"),
        "counts": (
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/test_counts.py",
            "tests/test_tracer_counts.py",
        ),
    }
    held = [_report(title, command) for title, command in parts.items()]
    return 0 if all(held) else 1


def bench(options: argparse.Namespace) -> int:
    """Run the benchmarks; further arguments go to benchmarks/run.py, or to the script that an option names."""
    ensure_environment()
    return _python(f"benchmarks/{options.script}.py", *options.rest, interpreter=options.python)


def projects(options: argparse.Namespace) -> int:
    """Run checkouts of PaddleClas, PARL and PaddleScience with dy2st beside PaddlePaddle; print what holds."""
    ensure_environment()
    return _python("-m", "benchmarks.projects", *options.rest)


def docs(options: argparse.Namespace) -> int:
    """Write the documentation to build/docs, and as a site to build/site where mkdocs-material is installed."""
    del options
    ensure_environment()
    failed = _python("docs/generate.py", "build/docs")
    if failed or not _usable("material"):
        print("" if failed else f"for a site: {PYTHON.relative_to(ROOT)} -m pip install mkdocs-material, and again")
        return failed
    return _python("-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", "docs/mkdocs.yml")


def lock(options: argparse.Namespace) -> int:
    """Write requirements.lock anew from pyproject.toml: hashes of every wheel, no URL, no path."""
    with tempfile.TemporaryDirectory() as scratch:
        uv = shutil.which("uv") or _borrowed_uv(Path(scratch))
        groups = [flag for group in LOCKED_GROUPS for flag in ("--group", group)]
        command = [uv, "pip", "compile", "pyproject.toml", *groups, "--universal", "--generate-hashes", "--no-header"]
        command += ["--no-emit-index-url", "--no-annotate", "--python-version", "3.11", "-q", "-o", LOCK.name]
        subprocess.run([*command, *(["--upgrade"] if options.upgrade else [])], cwd=ROOT, check=True)
    foreign = re.search(r".*(://|file:|^-|@ ).*", LOCK.read_text(), re.MULTILINE)
    if foreign:
        raise SystemExit(f"{LOCK.name} names a place outside of this project: {foreign.group().strip()}")
    print(f"wrote {LOCK.name}: {len(re.findall('==', LOCK.read_text()))} pins")
    return 0


def ensure_environment() -> bool:
    """Bring `.venv` in line with requirements.lock; say whether anything had to be done."""
    if VENV.is_symlink():  # it belongs to another checkout, which goes on using its own code
        return False
    wanted = _stamp()
    if STAMP.exists() and STAMP.read_text() == wanted and PYTHON.exists():
        return False
    print("setting up .venv (once; later runs start at once)", flush=True)
    uv = shutil.which("uv")
    if not (uv and _install_with_uv(uv)):
        _install_with_pip()
    STAMP.write_text(wanted)
    return True


def _stamp() -> str:
    """Name what an environment is made of: the lock, the package's metadata, the interpreter and the place."""
    made_of = [LOCK.read_bytes(), (ROOT / "pyproject.toml").read_bytes(), sys.version.encode(), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(made_of)).hexdigest()


def _install_with_uv(uv: str) -> bool:
    """Install with uv, which is much faster; False when it cannot, so that pip gets its turn."""
    try:
        if not _usable():
            subprocess.run([uv, "venv", "-q", "--clear", "--python", sys.executable, str(VENV)], check=True)
        install = [uv, "pip", "install", "-q", "--python", str(PYTHON)]
        subprocess.run([*install, "--require-hashes", "-r", str(LOCK)], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    except (OSError, subprocess.CalledProcessError):
        print("uv could not install the packages; trying pip", flush=True)
        return False
    return True


def _install_with_pip() -> None:
    if not _usable("pip"):
        if importlib.util.find_spec("ensurepip") is None or importlib.util.find_spec("venv") is None:
            raise SystemExit(
                "This Python cannot make virtual environments: its `ensurepip` module is missing.\n"
                "On Debian and Ubuntu it is in a package of its own: sudo apt install python3-venv\n"
                "Or install uv, which needs neither."
            )
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    install = [str(PYTHON), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([*install, "--require-hashes", "-r", str(LOCK)], check=True)
        subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", str(ROOT)], check=True)
    except subprocess.CalledProcessError as error:
        raise SystemExit("pip could not install the packages of requirements.lock (its reason is above).") from error


def _usable(module: str = "sys") -> bool:
    """Say whether `.venv` has the version of Python that runs this file, and `module` in it."""
    probe = f"import sys, {module}; sys.exit(sys.version_info[:2] != {tuple(sys.version_info[:2])})"
    return PYTHON.exists() and subprocess.run([str(PYTHON), "-c", probe], capture_output=True).returncode == 0


def _borrowed_uv(scratch: Path) -> str:
    """Install uv beside the project for the length of one command."""
    subprocess.run([sys.executable, "-m", "venv", str(scratch / "venv")], check=True)
    bin_folder = scratch / "venv" / PYTHON.parent.name
    subprocess.run([str(bin_folder / PYTHON.name), "-m", "pip", "install", "-q", "uv"], check=True)
    return str(bin_folder / "uv")


def _python(*arguments: str, interpreter: Path = PYTHON) -> int:
    return subprocess.run([str(interpreter), *arguments], cwd=ROOT, env=_this_checkout()).returncode


def _this_checkout() -> dict[str, str]:
    """Return the environment variables with which Python takes this checkout's code, whatever is installed.

    Where bytecode must not stand beside the sources it goes below `.venv`: tests start many processes, and each would
    compile every file that it imports.
    """
    variables = {**os.environ, "PYTHONPATH": str(ROOT)}
    if variables.pop("PYTHONDONTWRITEBYTECODE", ""):
        variables.setdefault("PYTHONPYCACHEPREFIX", str(VENV / "bytecode"))
    return variables


def _report(title: str, command: Sequence[str]) -> bool:
    """Run one part of `check`, print its line, and its output where it failed."""
    start = time.perf_counter()
    done = subprocess.run([str(PYTHON), *command], cwd=ROOT, env=_this_checkout(), capture_output=True, text=True)
    held = done.returncode == 0
    print(f"{'ok  ' if held else 'FAIL'} {title} ({time.perf_counter() - start:.1f} s)", flush=True)
    if not held:
        print("\n".join("     " + line for line in (done.stdout + done.stderr).splitlines()), flush=True)
    return held


def _parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="dev.py", description=__doc__, formatter_class=raw)
    subcommands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(command: Callable[[argparse.Namespace], int]) -> argparse.ArgumentParser:
        text = command.__doc__ or ""
        sub = subcommands.add_parser(command.__name__.replace("_", "-"), help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    add(setup)
    showing = add(demo)
    showing.usage = "dev.py demo [-h] [--list] [NAME [--steps N] [--out DIR] [--resume]]"
    showing.add_argument("name", nargs="?", default="demo", metavar="NAME", help="a recipe (docs/recipes.md)")
    showing.add_argument("--list", action="store_true", help="print the recipes")
    testing = add(test)
    testing.usage = "dev.py test [-h] [--fast | --soak] [--gpu] [--twice] [pytest arguments]"
    testing.epilog = "Examples: dev.py test -k while_loop -x     dev.py test tests/ir --update-golden"
    selection = testing.add_mutually_exclusive_group()
    selection.add_argument(
        "--fast", dest="selection", action="store_const", const="fast", default="", help="a minute: few cases each"
    )
    selection.add_argument("--soak", dest="selection", action="store_const", const="soak", help="all, soak tests too")
    testing.add_argument("--gpu", action="store_true", help="on a CUDA device, or say what is missing for that")
    testing.add_argument("--twice", action="store_true", help="a second time on what the first time has kept on disk")
    add(tests_of).add_argument("modules", nargs="*", metavar="MODULE", help="dy2st.jit.api or dy2st/jit/api.py")
    add(check)
    add(docs)
    running = add(projects)
    running.usage = "dev.py projects [-h] DIR ... --oracle PYTHON [arguments of benchmarks/projects]"
    running.epilog = "Example: dev.py projects PaddleClas PARL --oracle peer/bin/python --only resnet"
    benching = add(bench)
    benching.usage = "dev.py bench [-h] [--micro | --busy] [--python PATH] [arguments of the script]"
    benching.epilog = "Examples: dev.py bench --rows lstm mlp --quick     dev.py bench --peers     dev.py bench --micro"
    scripts = benching.add_mutually_exclusive_group()
    for name, what in (
        ("micro", "measure single parts, not whole workloads"),
        ("busy", "measure beside busy processes"),
    ):
        scripts.add_argument(f"--{name}", dest="script", action="store_const", const=name, default="run", help=what)
    benching.add_argument("--python", type=Path, default=PYTHON, help="an interpreter that has the peers")
    locking = add(lock)
    locking.add_argument("--upgrade", action="store_true", help="take newer versions where there are any")
    return parser


if __name__ == "__main__":
    sys.exit(main())
