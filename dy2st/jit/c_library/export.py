"""`paddle.jit.export_library` and `dy2st build`: a model becomes `NAME.h`, `libNAME.a` and `libNAME.so`.

Native code of its Programs (runtime/backends/cpu/standalone.py) and the C around it (runtime.c) call the C library
alone. An operation that only Python can run is refused here, with its line; so is a type that no field of C is for.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dy2st import dtypes
from dy2st.files import atomic, program_file
from dy2st.ir.clone import clone_program
from dy2st.ir.program import Program
from dy2st.ir.types import TensorType, Type
from dy2st.jit.c_library import c_source, page_build
from dy2st.jit.c_library.c_source import Entry, Library
from dy2st.jit.c_library.signature import NoFormInC, identifier, values_of
from dy2st.jit.c_library.targets import PlatformTarget, platform_target
from dy2st.jit.c_library.toolchain import Toolchain, toolchain
from dy2st.jit.c_library.weights import packed
from dy2st.jit.serialization.loaded_method import reachable
from dy2st.jit.serialization.one_program import saved_model, the_call
from dy2st.jit.serialization.schema import SavedCall, SavedLayer
from dy2st.passes import optimise
from dy2st.records import field, record
from dy2st.runtime.backends.cpu.standalone import standalone

_RANDOM = {"seed": "SEED", "draw": "DRAW"}
_TAKEN = frozenset({"create", "free", "save", "error", "options"})
"""What every library has beside the functions of its model."""
_WRITTEN = {"random": "DRAW", "seed": "SEED"}


def export_library(
    layer: Any,
    path: str | os.PathLike[str],
    input_spec: Sequence[Any] | None = None,
    *,
    name: str | None = None,
    target: str | None = None,
    strict: bool = False,
    weights: bool = True,
) -> Path:
    """Write a Layer, a function, or a model that `jit.save` wrote (its path) as a C library into a folder.

    The folder then has a header, a static and a shared library, the weights, an example and a CMakeLists.txt. Nothing
    of it needs Python. There is a function for `forward` and one for every other method under `to_static`, which take
    the methods' inputs under their names, with extents as free as in the Program. What they write stays with the
    instance, so a whole train step may be one. A Layer is written in the mode in which it is: call `eval()` first for
    use.

    Parameters
    ----------
    layer : Layer, function or str
        What is written.
    path : str
        The folder, which is made where it is not there.
    input_spec : list of InputSpec, optional
        What `to_static` declares otherwise, or the calls so far.
    name : str, optional
        What files and functions are called; otherwise what the file or the class is called.
    target : str, optional
        Which CPU the code is for; otherwise this machine's kind (`dy2st build --help` lists them). With `"wasm32"` the
        folder has `NAME.wasm`, an ES module with types for TypeScript, and a page: docs/browser.md.
    strict : bool, optional
        Whether results are the same bits on every CPU, those of Python under `DY2ST_STRICT=1`.
    weights : bool, optional
        Whether the library has the weights in it; otherwise it reads their file.

    Returns
    -------
    Path
        The header; of WebAssembly the ES module.

    Raises
    ------
    NotStandalone
        Where an operation has no native form, with its line.
    NoFormInC
        Where an input or an output is neither a tensor nor a number.
    MissingExtraError
        Where no C compiler is there: the extra `library` brings one.
    """
    saved = saved_model(layer, input_spec)
    aimed = platform_target(target, strict=strict)
    title = identifier(name or _usual_name(layer)).lower()
    draft = _Draft(title, aimed, saved)
    for method in saved.methods:
        function = identifier(method)
        draft.add(f"{function}_" if function in _TAKEN else function, the_call(saved, method))
    return draft.written(Path(path), weights)


def _usual_name(layer: Any) -> str:
    if program_file.is_path(layer):
        return Path(layer).name.removesuffix(".dy2st")
    return getattr(layer, "__name__", type(layer).__name__)


@record
class _Draft:
    """A library while its functions are compiled."""

    name: str
    target: PlatformTarget
    saved: SavedLayer
    entries: list[Entry] = field(default_factory=list[Entry])
    objects: list[bytes] = field(default_factory=list[bytes])
    state: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])
    constants: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict[str, "np.ndarray[Any, Any]"])

    def add(self, name: str, call: SavedCall) -> None:
        """Compile one function."""
        program = clone_program(Program(reachable(self.saved.program, call.function), call.function))
        kept = list(self._results(call, [v.type for v in program.block.results]))
        program.block.results = [program.block.results[at] for at, _, _ in kept]
        made = optimise(program)
        arguments = made.block.arguments
        names = [v.name or f"input_{i}" for i, v in enumerate(arguments)]
        states = ["NONE"] * call.inputs + [self._state(of) for of in call.state]
        given = values_of(names, [v.type for v in arguments], states, "input")
        types = [v.type for v in made.block.results]
        results = values_of([n for _, n, _ in kept], types, [s for _, _, s in kept], "output")
        code = standalone(made, self.target.machine, f"{self.name}_{name}__", f"{self.name}__")
        inside = {f"{name}.{i}": array for i, array in enumerate(code.constants)}
        self.constants.update(inside)
        self.entries.append(Entry(name, tuple(given), tuple(results), code.failures, tuple(inside)))
        self.objects.append(code.object)

    def _state(self, name: str) -> str:
        """Return the number of a tensor of the state, or which number of the random generator it is."""
        if name[0] == "?":
            return _RANDOM[name[1:]]
        said = self.saved.state[name]
        name = said.same or name
        self.state.setdefault(name, self.saved.state[name].array)
        return str([*self.state].index(name))

    def _results(self, call: SavedCall, types: Sequence[Type]) -> Iterator[tuple[int, str, str]]:
        """Yield which results the library has: their numbers, their names, and what of the state they become."""
        count = call.outputs()
        for at in range(count):
            yield at, "output" if count == 1 else f"output_{at}", "NONE"
        for target, template in call.writes:
            at, count = count, count + len(template.types())
            if target.kind in _WRITTEN:
                yield at, target.kind, _WRITTEN[target.kind]
            elif target.kind in ("elements", "attribute") and target.name in self._read:
                self._refuse_another_kind(target.name, template.types())
                yield at, target.name, self._state(target.name)

    @property
    def _read(self) -> set[str]:
        """The state that some function reads."""
        return {name for method in self.saved.methods.values() for call in method.calls for name in call.state}

    def _refuse_another_kind(self, name: str, types: Sequence[Type]) -> None:
        """Raise NoFormInC where what is written has no place in the memory of what stood there."""
        said = self.saved.state[name]
        dtype = dtypes.of_array(said.array)
        if any(other.same == name for other in self.saved.state.values()) or said.same is not None:
            raise NoFormInC(f"'{name}', which a call writes, is one tensor under two names")
        if len(types) != 1 or not isinstance(types[0], TensorType) or types[0].dtype is not dtype:
            raise NoFormInC(f"'{name}' is a tensor of {dtype.name}, and a call puts {', '.join(map(str, types))} there")

    # ---- files -----------------------------------------------------------------------------------------------------
    def written(self, folder: Path, built_in: bool) -> Path:
        """Write the files, compile and link them; return the header."""
        shapes = tuple((name, tuple(array.shape)) for name, array in self.state.items())
        library = Library(self.name, tuple(self.entries), shapes, packed(self.state), packed(self.constants), built_in)
        folder.mkdir(parents=True, exist_ok=True)
        if self.target.is_for_pages:
            return page_build.write(library, self.objects, toolchain(self.target.zig), folder)
        texts = {
            f"{self.name}.h": c_source.header(library),
            f"{self.name}.c": c_source.source(library),
            "example.c": c_source.example(library),
            "CMakeLists.txt": c_source.cmake(library),
        }
        for file, text in texts.items():
            atomic.replace(folder / file, [text.encode()])
        atomic.replace(folder / f"{self.name}.safetensors", [library.weights.content])
        atomic.replace(folder / f"{self.name}.constants", [library.constants.data])
        self._compile(toolchain(self.target.zig), folder)
        return folder / f"{self.name}.h"

    def _compile(self, tools: Toolchain, folder: Path) -> None:
        objects = [f"{self.name}.o", *(f"{self.name}_{entry.name}.o" for entry in self.entries)]
        for file, code in zip(objects[1:], self.objects, strict=True):
            (folder / file).write_bytes(code)
        usual = ["-std=c11", "-O2", "-fPIC", "-fvisibility=hidden", *self.target.flags]
        tools.run([*usual, "-c", f"{self.name}.c"], folder)
        tools.pack(f"lib{self.name}.a", objects, folder)
        shared = ["-shared", "-s", "-Wl,--gc-sections", "-Wl,-z,defs", "-o", f"lib{self.name}.so"]
        tools.run([*shared, *self.target.flags, *objects, "-lm", "-pthread"], folder)
        for file in (*objects, f"{self.name}.c", f"{self.name}.constants"):
            (folder / file).unlink()
