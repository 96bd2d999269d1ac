"""Where llvmlite is not there, or cannot be loaded: Programs run operation by operation, and one warning says so."""

import sys
import warnings

import numpy as np
import pytest

from dy2st.runtime.backends import llvm_availability
from dy2st.runtime.backends.cpu.compile_link import compiler, target
from dy2st.runtime.executor import select
from dy2st.runtime.interpreter.planned import Plan
from tests.runtime.programs import WANT, X, program_of, straight

pytestmark = pytest.mark.one_tier("looks at which tier runs")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Keep no code of other tests: it runs without llvmlite."""
    monkeypatch.setenv("DY2ST_CACHE_DIR", str(tmp_path / "cache"))


def test_without_llvmlite_there_is_one_warning(monkeypatch):
    program = program_of(straight, X)
    monkeypatch.setattr(llvm_availability, "_known", llvm_availability._Known())
    monkeypatch.setitem(sys.modules, "llvmlite", None)
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    with pytest.warns(RuntimeWarning, match="llvmlite is not installed: Programs run operation by operation"):
        assert isinstance(select.ready(program, np), Plan)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(select.ready(program, np), Plan)


@pytest.fixture
def unloaded(monkeypatch):
    program = program_of(straight, X)
    monkeypatch.setattr(llvm_availability, "_known", llvm_availability._Known())
    monkeypatch.setenv("DY2ST_BACKEND", "native")
    compiler.library.cache_clear()
    target.host_target.cache_clear()
    yield program
    compiler.library.cache_clear()
    target.host_target.cache_clear()


def no_library(tmp_path):
    """An empty folder."""


def not_a_library(tmp_path):
    (tmp_path / "binding").mkdir()
    for name in ("libllvmlite.so", *compiler._NAMES.values()):
        (tmp_path / "binding" / name).write_text("no library")


@pytest.mark.parametrize("installed", [no_library, not_a_library])
def test_an_llvmlite_that_cannot_be_loaded_is_done_without(unloaded, monkeypatch, tmp_path, installed):
    installed(tmp_path)
    monkeypatch.setattr(compiler, "llvm_folder", lambda: str(tmp_path))
    runners = [select.ready(unloaded, np), select.ready(unloaded, np)]
    with pytest.warns(RuntimeWarning, match=r"llvmlite cannot be loaded \(.*llvmlite.*\): Programs run") as said:
        assert [runner.run([X])[0] for runner in runners] == [pytest.approx(WANT)] * 2
    assert len(said) == 1
    assert isinstance(select.ready(unloaded, np), Plan)


def test_an_llvmlite_without_a_function_that_is_called_is_done_without(unloaded, monkeypatch):
    monkeypatch.setitem(compiler._FUNCTIONS, "OfAnotherVersion", (None,))
    with pytest.warns(RuntimeWarning, match=r"llvmlite cannot be loaded \(.*LLVMPY_OfAnotherVersion\): Programs run"):
        assert select.ready(unloaded, np).run([X])[0] == pytest.approx(WANT)
