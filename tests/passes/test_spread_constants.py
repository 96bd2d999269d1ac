"""Arrays of one number are repeated numbers where elementwise operations read them."""

import numpy as np
import pytest

from dy2st.passes.lowering.broadcast_constants import BroadcastConstants
from dy2st.runtime.backends.cpu.lowering import prepared
from dy2st.runtime.backends.cpu.native_executable import NativePlan
from dy2st.runtime.interpreter.planned import compile_plan
from tests.passes.texts import becomes, program, stays

SPREAD = BroadcastConstants()


def constant(name: str, *numbers: str, dtype: str = "float32") -> str:
    kind = f"{dtype}[{len(numbers)}]"
    return f"%{name}: {kind} = constant() {{value={kind}({', '.join(numbers)})}}"


def test_an_elementwise_operation_reads_a_repeated_number() -> None:
    array = constant("c", *["0.5"] * 17)
    becomes(
        SPREAD,
        f"""%x: float32[17]
        {array}
        %y: float32[17] = mul(%x, %c)
        %z: float32[17] = sub(%c, %y)
        return %z""",
        f"""%x: float32[17]
        {array}
        %n: float32[] = constant() {{value=float32[](0.5)}}
        %r: float32[17] = broadcast(%n) {{shape=(17,)}}
        %y: float32[17] = mul(%x, %r)
        %z: float32[17] = sub(%r, %y)
        return %z""",
    )


@pytest.mark.parametrize(
    "array",
    [constant("c", *["0.5"] * 16), constant("c", *["0.0"] * 16, "-0.0"), constant("c", *["1.0"] * 16, "2.0")],
    ids=["few", "two zeros", "two numbers"],
)
def test_few_or_other_numbers_stay(array: str) -> None:
    length = array.count(",") + 1
    stays(SPREAD, f"%x: float32[{length}]\n{array}\n%y: float32[{length}] = mul(%x, %c)\nreturn %y")


def test_what_needs_all_of_it_in_memory_reads_it_there() -> None:
    array = constant("c", *["0.5"] * 17)
    stays(SPREAD, f"%x: float32[]\n{array}\n%y: float32[1, 17] = reshape(%c) {{shape=(1, 17)}}\nreturn %y, %c")


@pytest.mark.parametrize("number", ["nan", "-0.0", "0.1"])
def test_the_same_bits_natively(number: str, rng: np.random.Generator) -> None:
    p = program(f"""%x: float32[33]
        {constant("c", *[number] * 33)}
        %y: float32[33] = maximum(%x, %c)
        %z: float32[33] = mul(%y, %c)
        return %z, %c""")
    assert sum(o.op.name == "broadcast" for o in prepared(p).block.operations) == 1
    x = rng.normal(size=33).astype("float32")
    for found, wanted in zip(NativePlan(p).run([x]), compile_plan(p).run([x]), strict=True):
        assert found.tobytes() == wanted.tobytes()
