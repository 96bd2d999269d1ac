"""Hand-built Programs as bytes, and their values apart."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st import static
from dy2st.errors import FileFormatError
from tests.static.test_model_files import PIXELS, Net


@pytest.fixture(autouse=True)
def static_mode() -> Iterator[None]:
    paddle.enable_static()
    with static.scope_guard(static.Scope()):
        yield
    paddle.disable_static()


@pytest.mark.proves("static.serialize_program static.serialize_persistables static.deserialize_program "
                    "static.deserialize_persistables static.save_to_file static.load_from_file")  # fmt: skip
def test_a_program_and_its_values_go_through_files(tmp_path: Path) -> None:
    net = Net()
    want = net.infer()
    content = static.serialize_program([net.x], [net.out], program=net.program)
    values = static.serialize_persistables([net.x], [net.out], static.Executor(), program=net.program)
    static.save_to_file(tmp_path / "net.program", content)
    static.save_to_file(tmp_path / "net.values", values)
    assert static.load_from_file(tmp_path / "net.program") == content
    with static.scope_guard(static.Scope()):
        program = static.deserialize_program(static.load_from_file(tmp_path / "net.program"))
        executor = static.Executor()
        with pytest.raises(RuntimeError, match="startup program"):
            executor.run(program, feed={"pixels": PIXELS}, fetch_list=[net.out.name])
        read = static.load_from_file(tmp_path / "net.values")
        assert static.deserialize_persistables(program, read, executor) is program
        (found,) = executor.run(program, feed={"pixels": PIXELS}, fetch_list=[net.out.name])
    np.testing.assert_array_equal(found, want)
    assert len(program.all_parameters()) == 4


@pytest.mark.proves("static.normalize_program")
def test_a_normalized_program_does_what_is_asked_for_alone() -> None:
    net = Net()
    program = static.normalize_program(net.program, [net.x], [net.out])
    (found,) = static.Executor().run(program, feed={"pixels": PIXELS}, fetch_list=[net.out.name])
    np.testing.assert_array_equal(found, net.infer())
    assert len(program.ops) < len(net.program.ops)
    with pytest.raises(TypeError, match=r"needs a paddle\.static\.Program, not str"):
        static.normalize_program("net", [net.x], [net.out])  # type: ignore[arg-type]


def test_what_is_wrong_with_bytes_is_said(tmp_path: Path) -> None:
    net = Net()
    content = static.serialize_program([net.x], [net.out], program=net.program)
    values = static.serialize_persistables([net.x], [net.out], static.Executor(), program=net.program)
    for damaged in (content[:-1], content[:40], b"", values, content.replace(b"parameter", b"parametes")):
        with pytest.raises(FileFormatError, match="the bytes: "):
            static.deserialize_program(damaged)
    program = static.deserialize_program(content)
    with pytest.raises(FileFormatError, match="the bytes: "):
        static.deserialize_persistables(program, content, static.Executor())
    with pytest.raises(TypeError, match="deserialize_program takes bytes, not str"):
        static.deserialize_program("net")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="save_to_file takes bytes, not str"):
        static.save_to_file(tmp_path / "x", "net")  # type: ignore[arg-type]
    with static.program_guard(static.Program(), static.Program()):
        x = static.data("x", [2])
        none = static.serialize_persistables([x], [x * 2], static.Executor())
    with pytest.raises(ValueError, match="the bytes have no value for the variable"):
        static.deserialize_persistables(program, none, static.Executor())
    with pytest.raises(TypeError, match="unexpected keyword argument 'quick'"):
        static.serialize_program([net.x], [net.out], quick=True)
