"""LLVM: text to machine code, by functions of the shared library that llvmlite brings.

They are called as they are, without `llvmlite.binding`: importing that takes 35 ms of Python's time, four times as long
as loading the library, and it puts one lock around all of them. Here every call has a context of its own, so threads
compile at the same time.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from dy2st.records import record
from dy2st.runtime.aot_cache.environment_key import llvm_folder
from dy2st.runtime.backends.llvm_availability import NoLlvm

_HANDLE, _TEXT, _INT, _OUT = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p)
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "InitializeNativeTarget": (None,),
    "InitializeNativeAsmPrinter": (None,),
    "InitializeAllTargetInfos": (None,),
    "InitializeAllTargets": (None,),
    "InitializeAllTargetMCs": (None,),
    "InitializeAllAsmPrinters": (None,),
    "GetVersionInfo": (ctypes.c_uint,),
    "GetProcessTriple": (None, _OUT),
    "GetHostCPUName": (None, _OUT),
    "GetHostCPUFeatures": (_INT, _OUT),
    "DisposeString": (None, _HANDLE),
    "GetTargetFromTriple": (_HANDLE, _TEXT, _OUT),
    "CreateTargetMachine": (_HANDLE, _HANDLE, _TEXT, _TEXT, _TEXT, _INT, _TEXT, _TEXT, _INT, _INT, _TEXT),
    "DisposeTargetMachine": (None, _HANDLE),
    "CreateTargetMachineData": (_HANDLE, _HANDLE),
    "CopyStringRepOfTargetData": (None, _HANDLE, _OUT),
    "DisposeTargetData": (None, _HANDLE),
    "ContextCreate": (_HANDLE,),
    "ContextDispose": (None, _HANDLE),
    "ParseAssembly": (_HANDLE, _HANDLE, _TEXT, _OUT),
    "DisposeModule": (None, _HANDLE),
    "SetTarget": (None, _HANDLE, _TEXT),
    "SetDataLayout": (None, _HANDLE, _TEXT),
    "VerifyModule": (ctypes.c_bool, _HANDLE, _OUT),
    "CreatePipelineTuningOptions": (_HANDLE,),
    "DisposePipelineTuningOptions": (None, _HANDLE),
    "CreatePassBuilder": (_HANDLE, _HANDLE, _HANDLE),
    "DisposePassBuilder": (None, _HANDLE),
    "CreateNewModulePassManager": (_HANDLE,),
    "DisposeNewModulePassManger": (None, _HANDLE),
    "module_AddAlwaysInlinerPass": (None, _HANDLE),
    "module_AddInstCombinePass": (None, _HANDLE),
    "module_AddSimplifyCFGPass": (None, _HANDLE),
    "module_AddSROAPass": (None, _HANDLE),
    "module_AddGlobalDCEPass": (None, _HANDLE),
    "RunNewModulePassManager": (None, _HANDLE, _HANDLE, _HANDLE),
    "TargetMachineEmitToMemory": (_HANDLE, _HANDLE, _HANDLE, _INT, _OUT),
    "GetBufferStart": (_HANDLE, _HANDLE),
    "GetBufferSize": (ctypes.c_size_t, _HANDLE),
    "DisposeMemoryBuffer": (None, _HANDLE),
}
"""What each function gives, and what it takes."""
_free: dict[TargetMachine, list[Any]] = {}
"""LLVM's machines that no thread uses: a new one takes 0.2 ms, and 0.6 ms more for its first module."""
_NAMES = {"darwin": "libllvmlite.dylib", "win32": "llvmlite.dll"}


@record(frozen=True)
class TargetMachine:
    """What code is made for: a triple, a CPU, features of it, how far code and what it uses may stand apart."""

    triple: str
    cpu: str
    features: str
    relocation: str
    model: str
    level: int


class _Library:
    """The functions, by the names of the table."""

    def __init__(self, path: str):
        library = ctypes.CDLL(path)
        for name, (gives, *takes) in _FUNCTIONS.items():
            function = getattr(library, f"LLVMPY_{name}")
            function.restype, function.argtypes = gives, takes
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: all there are have been set
        raise AttributeError(name)

    def text(self, function: Callable[..., Any], *operands: Any) -> str:
        """Return what a function writes to its last operand."""
        return self.called(function, *operands)[1]

    def called(self, function: Callable[..., Any], *operands: Any) -> tuple[Any, str]:
        """Return what a function gives, and what it writes to its last operand."""
        out = ctypes.c_char_p()
        made = function(*operands, ctypes.byref(out))
        if not out:
            return made, ""
        text = (out.value or b"").decode(errors="replace")
        self.DisposeString(out)
        return made, text


@functools.cache
def library() -> _Library:
    """Return LLVM, ready to make code for this machine; NoLlvm where it cannot be loaded."""
    path = os.path.join(llvm_folder() or "", "binding", _NAMES.get(sys.platform, "libllvmlite.so"))
    try:
        _load_beside(path)
        made = _Library(path)
    except (OSError, AttributeError) as error:  # of another system, or not as known
        raise NoLlvm(str(error)) from error
    made.InitializeNativeTarget()
    made.InitializeNativeAsmPrinter()
    return made


def _load_beside(path: str) -> None:
    """Load the library while other threads run: ctypes itself keeps Python's lock for those 10 ms.

    Where that fails ctypes says why.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).dlopen(path.encode(), os.RTLD_NOW)


@functools.cache
def _know_all_targets() -> None:
    """Let LLVM make code for other machines than this one."""
    lib = library()
    for what in ("TargetInfos", "Targets", "TargetMCs", "AsmPrinters"):
        getattr(lib, f"InitializeAll{what}")()


def version() -> int:
    """Return the version of LLVM, as one number."""
    return library().GetVersionInfo()


def host() -> tuple[str, str, dict[str, bool]]:
    """Return the triple of this machine, its CPU, and which features that has."""
    lib = library()
    features = lib.text(lib.GetHostCPUFeatures).split(",")
    known = {feature[1:]: feature[0] == "+" for feature in sorted(features, key=lambda f: f[1:]) if feature}
    return lib.text(lib.GetProcessTriple), lib.text(lib.GetHostCPUName), known


def compiled(text: str, machine: TargetMachine, passes: Sequence[str], *, readable: bool = False) -> bytes:
    """Return the object file of LLVM IR text after passes, by LLVM's names; its assembly language where `readable`.

    RuntimeError with LLVM's message for text that is wrong.
    """
    lib = library()
    with ExitStack() as ends:

        def kept(made: Any, dispose: Callable[[Any], None]) -> Any:
            ends.callback(dispose, made)
            return made

        target = ends.enter_context(_lent(lib, machine))
        context = kept(lib.ContextCreate(), lib.ContextDispose)
        module = kept(_parsed(lib, context, text), lib.DisposeModule)
        layout = kept(lib.CreateTargetMachineData(target), lib.DisposeTargetData)
        lib.SetTarget(module, machine.triple.encode())
        lib.SetDataLayout(module, lib.text(lib.CopyStringRepOfTargetData, layout).encode())
        broken, message = lib.called(lib.VerifyModule, module)
        if broken:
            raise RuntimeError(message)
        options = kept(lib.CreatePipelineTuningOptions(), lib.DisposePipelineTuningOptions)
        builder = kept(lib.CreatePassBuilder(target, options), lib.DisposePassBuilder)
        manager = kept(lib.CreateNewModulePassManager(), lib.DisposeNewModulePassManger)
        for name in passes:
            getattr(lib, f"module_Add{name}Pass")(manager)
        lib.RunNewModulePassManager(manager, module, builder)
        made, message = lib.called(lib.TargetMachineEmitToMemory, target, module, int(not readable))
        if not made:
            raise RuntimeError(message)
        kept(made, lib.DisposeMemoryBuffer)
        return ctypes.string_at(lib.GetBufferStart(made), lib.GetBufferSize(made))


def _parsed(lib: _Library, context: Any, text: str) -> Any:
    module, message = lib.called(lib.ParseAssembly, context, text.encode())
    if not module:
        raise RuntimeError(f"LLVM IR parsing error\n{message}")
    return module


@contextmanager
def _lent(lib: _Library, wanted: TargetMachine) -> Iterator[Any]:
    """Lend one of LLVM's machines to this thread; after an error it is given up."""
    free = _free.setdefault(wanted, [])
    try:
        machine = free.pop()
    except IndexError:
        machine = _made(lib, wanted)
    try:
        yield machine
    except BaseException:
        lib.DisposeTargetMachine(machine)
        raise
    free.append(machine)


def _made(lib: _Library, wanted: TargetMachine) -> Any:
    target, message = lib.called(lib.GetTargetFromTriple, wanted.triple.encode())
    if not target:  # nothing of this machine's family
        _know_all_targets()
        target, message = lib.called(lib.GetTargetFromTriple, wanted.triple.encode())
    if not target:
        raise RuntimeError(message)
    triple = wanted.triple + "-elf" * (
        os.name == "nt" and wanted.model == "jitdefault"
    )  # what LLVM's loader takes there
    texts = [text.encode() for text in (triple, wanted.cpu, wanted.features, wanted.relocation, wanted.model, "")]
    made = lib.CreateTargetMachine(target, *texts[:3], wanted.level, *texts[3:5], 0, 1, texts[5])
    if not made:
        raise RuntimeError(f"LLVM makes no code for {wanted.cpu} ({wanted.triple})")
    return made
