"""The command `dy2st`: what is done with saved models and with projects; converted source, and what a pass does.

An error is one line on the standard error stream; the exit status is then 2 for a wrong command line, else 1.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from dy2st import paddle_files
from dy2st.errors import ProgramSyntaxError
from dy2st.files import program_file
from dy2st.ir.parser import parse
from dy2st.ir.printer import to_text
from dy2st.ir.program import Program
from dy2st.ir.verifier import verify
from dy2st.jit import StaticFunction, load, to_static
from dy2st.jit.c_library.targets import NAMES
from dy2st.jit.serialization.translated_layer import TranslatedLayer
from dy2st.nn.layer import Layer
from dy2st.onnx.exporting import export
from dy2st.passes.core.base import run_pipeline
from dy2st.passes.pipelines import PIPELINES, all_passes, converge
from dy2st.project import check_project, to_html, to_json
from dy2st.project import to_text as to_report
from dy2st.quantization import command as quantizing
from dy2st.runtime.backends.cpu import STAGES
from dy2st.runtime.eager.tape.grad_mode import no_grad
from dy2st.runtime.eager.tensor import Tensor
from dy2st.scaling import Link
from dy2st.scaling import report as scaling_report
from dy2st.serving import Limits, serve
from dy2st.serving.entries import named_outputs
from dy2st.viz import draw


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # whoever read our output has gone
        return 0
    except Exception as error:
        print(f"dy2st: {_one_line(error)}", file=sys.stderr)
        return 1
    return 0


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="dy2st",
        description="Look into saved models, run, draw, build and serve them; show converted source and passes.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    inspect = commands.add_parser("inspect", help="say what a saved model holds")
    inspect.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    inspect.add_argument("--text", action="store_true", help="print the Program, too")
    inspect.add_argument(
        "--stage", choices=STAGES, help="print native code for this CPU, as `dy2st code MODEL --stage` does"
    )
    inspect.set_defaults(command=_inspect)
    run = commands.add_parser("run", help="run a saved model on arrays")
    run.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    run.add_argument("--input", metavar="NAME=FILE.npy", action="append", default=[], type=_named,
                     help="an argument: an array from a .npy file, or a number")  # fmt: skip
    run.add_argument("--output", metavar="FILE.npz", type=Path, help="write the outputs there; else they are printed")
    run.add_argument("--method", default="forward", help="which of the saved methods (default: forward)")
    run.add_argument("--train", action="store_true", help="run it as in training")
    run.set_defaults(command=_run)
    onnx = commands.add_parser("onnx", help="write a saved model as an ONNX model")
    onnx.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    onnx.add_argument("-o", "--output", metavar="FILE.onnx", type=Path, help="default: beside the model")
    onnx.add_argument("--train", action="store_true", help="write it as in training")
    onnx.set_defaults(command=_onnx)
    build = commands.add_parser("build", help="write a saved model as C library or WebAssembly, without Python")
    build.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    build.add_argument("-o", "--output", metavar="DIR", type=Path, help="default: a folder beside the model")
    build.add_argument("--name", help="what files and functions are called; default: what the model is called")
    build.add_argument(
        "--target", choices=NAMES, help="which CPU it is for (wasm32: pages, node); default: this machine's"
    )
    build.add_argument("--strict", action="store_true", help="the same bits on every CPU, those of DY2ST_STRICT=1")
    build.add_argument("--weights-apart", action="store_true", help="the library reads its weights from their file")
    build.add_argument("--train", action="store_true", help="write it as in training")
    build.set_defaults(command=_build)
    _serve_options(commands.add_parser("serve", help="answer requests over HTTP: the Open Inference Protocol"))
    _scale_options(commands.add_parser("scale", help="say what training a saved model costs on many ranks"))
    quantizing.options(commands.add_parser("quantize", help="write a saved model with weights of 8 or 4 bits"))
    viz = commands.add_parser("viz", help="draw a saved model as an HTML page or as SVG")
    viz.add_argument("model", metavar="MODEL", help="a file that jit.save wrote")
    viz.add_argument("-o", "--output", metavar="FILE.html", type=Path, help="default: beside the model")
    viz.add_argument("--details", action="store_true", help="draw constants and what serves shapes only, too")
    viz.set_defaults(command=_viz)
    code = commands.add_parser("code", help="print what a function, or a model, becomes")
    code.add_argument("what", metavar="FILE:FUNCTION|MODEL",
                      help="a function or Class.method of a file, which is imported; or a saved model")  # fmt: skip
    code.add_argument("--stage", choices=STAGES, help="of a saved model: a stage on its way to this CPU's machine code")
    code.set_defaults(command=_code, refuse=code.error)
    one = commands.add_parser("pass", help="print a Program before and after a pass")
    one.add_argument("words", metavar="[NAME] FILE", nargs="*",
                     help="a pass, and a Program as text (- for the standard input) or a saved model")  # fmt: skip
    one.add_argument("--pipeline", metavar="NAME", help=f"run all of a pipeline instead: {', '.join(PIPELINES)}")
    one.add_argument("--after-only", action="store_true", help="print the Program after the pass alone")
    one.add_argument("--list", action="store_true", help="list the passes and the pipelines that they are in")
    one.set_defaults(command=_pass, refuse=one.error)
    check = commands.add_parser("check-project", help="say what differs for a project that uses Paddle")
    check.add_argument("folder", metavar="DIR", type=Path, help="sources; they are read, never imported or run")
    check.add_argument("--json", action="store_true", help="print JSON instead of text")
    check.add_argument("--html", metavar="FILE.html", type=Path, help="write one page, too")
    check.set_defaults(command=_check_project)
    return parser


def _serve_options(parser: argparse.ArgumentParser) -> None:
    some = Limits()
    parser.add_argument("models", metavar="[NAME=]MODEL", nargs="+",
                        help="files that jit.save wrote; without a name that of the file")  # fmt: skip
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: this machine alone)")
    parser.add_argument("--port", type=int, default=8000, help="0 takes a free one, which is printed (default: 8000)")
    parser.add_argument("--max-batch", type=int, default=some.max_rows, metavar="ROWS",
                        help=f"rows of one batch; 1 turns batching off (default: {some.max_rows})")  # fmt: skip
    parser.add_argument("--max-delay", type=float, default=some.max_delay * 1e3, metavar="MS",
                        help="milliseconds that a request waits for others (default: %(default)g)")  # fmt: skip
    parser.add_argument("--max-queue", type=int, default=some.max_queue, metavar="N",
                        help="requests that wait for a model; more get 503 (default: %(default)s)")  # fmt: skip
    parser.add_argument("--max-size", type=float, default=some.max_bytes / 2**20, metavar="MB",
                        help="of a request (default: %(default)g)")  # fmt: skip
    parser.add_argument("--max-seconds", type=float, default=some.max_seconds, metavar="S",
                        help="that a request takes (default: %(default)g)")  # fmt: skip
    parser.set_defaults(command=_serve)


def _scale_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "model", metavar="MODEL", help="a file that jit.save wrote; its step is measured on this machine"
    )
    parser.add_argument("--batch", type=int, default=32, help="of one rank: the first extent (default: %(default)s)")
    parser.add_argument("--extent", metavar="NAME=N", action="append", default=[], type=_extent, help="another extent")
    parser.add_argument("--latency", type=float, default=20.0, metavar="US", help="of a message (default: %(default)g)")
    parser.add_argument("--bandwidth", type=float, default=1.25, metavar="GB/S",
                        help="between two ranks (default: %(default)g, which is 10 Gbit/s)")  # fmt: skip
    parser.add_argument("--micro-batches", type=int, default=8, help="of a pipeline (default: %(default)s)")
    parser.set_defaults(command=_scale)


# ---- the commands ------------------------------------------------------------------------------------------------
def _inspect(options: argparse.Namespace) -> None:
    layer = load(options.model)
    ours = program_file.found(options.model)
    path = ours if ours.is_file() else paddle_files.found(options.model) or ours
    if not isinstance(layer, TranslatedLayer):
        raise ValueError(f"{path} can be in no Program: jit.load runs it operation by operation")
    print(f"{path}: {path.stat().st_size:,} bytes, saved in {'training' if layer.training else 'evaluation'} mode")
    for name, method in layer._methods.items():
        print(f"\n{name}{method.signature}")
        for call, program in method.programs():
            counts = Counter(operation.name for operation in program.walk())
            mode = {None: "", "train": ", for training", "eval": ", for evaluation"}[call.mode]
            taken = ", ".join(f"{v.name}: {v.type}" for v in program.block.arguments[: call.inputs])
            given = ", ".join(str(v.type) for v in program.block.results[: call.outputs()])
            print(f"  ({taken}) -> ({given}){mode}")
            ops = ", ".join(f"{n} {op}" if n > 1 else op for op, n in sorted(counts.items()))
            print(textwrap.fill(ops, 100, initial_indent="    ", subsequent_indent="    "))
    print(f"\n{len(layer._saved.state)} tensors")
    for name, said in layer._saved.state.items():
        same = f" (the same as {said.same})" if said.same else ""
        shape = list(said.array.shape)
        print(f"  {name}: {said.array.dtype}{shape} {said.kind}{same}")
    if options.text:
        print("\n" + to_text(layer._saved.program), end="")
    if options.stage:
        _print_stage(layer, options.stage)


def _print_stage(layer: Any, stage: str) -> None:
    """Print the Programs of a loaded model at a stage of native code."""
    from dy2st.runtime.backends.cpu import dump_stages

    for name, method in layer._methods.items():
        for _, program in method.programs():
            print(f"\n; {name}\n" + dump_stages.stage(program, stage))


def _run(options: argparse.Namespace) -> None:
    layer = load(options.model)
    layer.train(options.train)
    if options.method not in layer._methods:
        raise ValueError(f"no method {options.method!r} was saved; there are {', '.join(map(repr, layer._methods))}")
    method = layer._methods[options.method]
    given = {name: _argument(name, text) for name, text in options.input}
    if len(given) != len(options.input):
        raise ValueError("an input was given twice")
    with no_grad():
        outputs = dict(named_outputs(method(**given), "output"))
    if options.output is None:
        for name, array in outputs.items():
            print(f"{name}: {array.dtype}{list(array.shape)}")
            print(np.array2string(array, threshold=200))
        return
    with open(options.output, "wb") as file:
        np.savez(file, allow_pickle=False, **outputs)
    print(f"{options.output}: {', '.join(f'{n} {a.dtype}{list(a.shape)}' for n, a in outputs.items())}")


def _onnx(options: argparse.Namespace) -> None:
    layer = load(options.model)
    layer.train(options.train)
    print(export(layer, options.output or program_file.file_name(options.model).with_suffix(".onnx")))


def _build(options: argparse.Namespace) -> None:
    from dy2st.jit.c_library.export import export_library

    layer = load(options.model)
    layer.train(options.train)
    file = program_file.file_name(options.model)
    folder = options.output or file.with_suffix("")
    print(export_library(layer, folder, name=options.name or file.stem, target=options.target, strict=options.strict,
                         weights=not options.weights_apart))  # fmt: skip


def _serve(options: argparse.Namespace) -> None:
    models: dict[str, str] = {}
    for text in options.models:
        name, equals, path = text.partition("=")
        name, path = (name, path) if equals else (program_file.file_name(text).stem, text)
        if name in models:
            raise ValueError(f"two models are named {name!r}: write NAME=MODEL")
        models[name] = path
    limits = Limits(
        max_rows=options.max_batch, max_delay=options.max_delay / 1e3, max_queue=options.max_queue,
        max_bytes=int(options.max_size * 2**20), max_seconds=options.max_seconds,
    )  # fmt: skip
    serve(models, options.host, options.port, limits)


def _scale(options: argparse.Namespace) -> None:
    link = Link(options.latency / 1e6, options.bandwidth * 1e9)
    print(scaling_report(load(options.model), options.batch, dict(options.extent), link, options.micro_batches), end="")


def _viz(options: argparse.Namespace) -> None:
    target = options.output or program_file.file_name(options.model).with_suffix(".html")
    print(draw(options.model, target, details=options.details))


def _code(options: argparse.Namespace) -> None:
    parts = _file_and_function(options.what)
    if options.stage:
        if parts is not None and parts[0].suffix == ".py":
            options.refuse(f"--stage shows a saved model, and {options.what!r} is a function: `jit.save` it first")
            return
        _print_stage(load(options.what), options.stage)
        return
    if parts is None:
        options.refuse(f"{options.what!r} is not FILE:FUNCTION; of a saved model, `--stage` prints the code")
        return
    path, names = parts
    found: Any = _module(path)
    for name in names.split("."):
        if not hasattr(found, name):
            raise ValueError(f"{path} has no function {names!r}")
        found = getattr(found, name)
    if isinstance(found, Layer) or (isinstance(found, type) and issubclass(found, Layer)):
        found = found.forward
    if isinstance(found, StaticFunction):
        found = found.dygraph_function
    if isinstance(found, type) or not callable(found):
        raise TypeError(f"{names} of {path} is no function but {type(found).__name__}")
    print(to_static(found).code.rstrip("\n"))


def _pass(options: argparse.Namespace) -> None:
    passes = all_passes()
    if options.list:
        for name, one in passes.items():
            print(f"{name:26} {(type(one).__doc__ or '').partition(chr(10))[0]}")
        for name, pipeline in PIPELINES.items():
            print(textwrap.fill(", ".join(p.name for p in pipeline()), 118, initial_indent=f"\npipeline {name}: "))
        return
    words: list[str] = options.words if options.pipeline is None else [options.pipeline, *options.words]
    if len(words) != 2:
        options.refuse("give it a pass and a file, or --pipeline NAME and a file, or --list")
        return
    name, path = words
    kind, known = ("pass", passes) if options.pipeline is None else ("pipeline", PIPELINES)
    if name not in known:
        near = difflib.get_close_matches(name, list(known), n=1, cutoff=0)
        options.refuse(f"there is no {kind} {name!r}; did you mean {near[0]!r}? `--list` shows all")
        return
    for program in _programs(path):
        verify(program)
        before = "" if options.after_only else f"# before\n{to_text(program)}\n# after {name}\n"
        if name == "default":
            changed = converge(program, verify=True)
        else:
            changed = run_pipeline(program, PIPELINES[name]() if name in PIPELINES else [passes[name]], verify=True)
        print(before + to_text(program) + ("" if changed or not before else "# nothing has changed\n"), end="")


def _check_project(options: argparse.Namespace) -> None:
    found = check_project(options.folder)
    print(to_json(found) if options.json else to_report(found), end="")
    if options.html:
        options.html.write_text(to_html(found), encoding="utf-8")


# ---- helpers -----------------------------------------------------------------------------------------------------
def _programs(path: str) -> Iterator[Program]:
    """Yield the Program that a text is, or those of a saved model."""
    model = program_file.found(path)
    if model.suffix == program_file.SUFFIX and model.is_file():
        for method in load(model)._methods.values():
            yield from (program for _, program in method.programs())
        return
    text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    try:
        yield parse(text)
    except ProgramSyntaxError as error:
        raise ProgramSyntaxError(f"{'standard input' if path == '-' else path}: {error}") from error


def _named(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (equals and name and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE.npy")
    return name, value


def _extent(text: str) -> tuple[str, int]:
    name, equals, value = text.partition("=")
    if not (equals and name and value.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=N")
    return name, int(value)


def _file_and_function(text: str) -> tuple[Path, str] | None:
    path, colon, name = text.rpartition(":")
    return (Path(path), name) if colon and path and name else None


def _argument(name: str, text: str) -> Any:
    """Return the number or the array that an input names."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if not text.endswith(".npy"):
        raise ValueError(f"input {name!r}: {text!r} is neither a number nor a .npy file")
    try:
        return Tensor(np.load(text, allow_pickle=False))
    except ValueError as error:
        raise ValueError(f"input {name!r}: {text} is no array that can be read ({error})") from error


def _module(path: Path) -> Any:
    """Import a Python file under its own name."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise ImportError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    finally:
        del sys.path[0]
    return module


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = "; ".join(line.strip() for line in str(error).splitlines() if line.strip())
    return text.replace(":; ", ": ") or type(error).__name__
