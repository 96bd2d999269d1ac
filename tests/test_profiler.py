"""Steps and named parts are measured."""

import time

import pytest

from dy2st import profiler
from dy2st.errors import FileFormatError


def names(found):
    return [name for name, _, _ in found.events]


def test_recorded_steps_and_parts(tmp_path, capsys):
    written = []
    plan = profiler.make_scheduler(closed=1, ready=0, record=2, repeat=1)
    found = profiler.Profiler(scheduler=plan, on_trace_ready=written.append)
    with found:
        for step in range(4):
            with profiler.RecordEvent(f"part {step}"):
                time.sleep(0.002)
            found.step(num_samples=8)
    assert names(found) == ["part 1", "ProfileStep#1", "part 2", "ProfileStep#2"]
    assert written == [found]
    assert all(end - begin >= 2e6 for _, begin, end in found.events)
    info = found.step_info("images/s")
    assert info.startswith("batch_cost: 0.0")
    assert info.endswith("images/s")
    assert found.step_info() == "no step was made"
    found.export(str(tmp_path / "t.json"))
    events = profiler.load_profiler_result(str(tmp_path / "t.json"))["traceEvents"]
    assert [e["name"] for e in events] == names(found)
    assert all(e["dur"] >= 2000 for e in events)
    found.summary(sorted_by=profiler.SortedKeys.CPUMax)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["name", "ProfileStep", "part", "part"]
    with pytest.raises(ValueError, match="format is json, not 'pb'"):
        found.export("x", "pb")


def test_a_range_of_steps_is_written(tmp_path):
    write = profiler.export_chrome_tracing(str(tmp_path / "logs"), "me")
    with profiler.Profiler(scheduler=(1, 2), on_trace_ready=write) as found:
        for _ in range(3):
            found.step()
    assert names(found) == ["ProfileStep#1"]
    assert [p.name for p in (tmp_path / "logs").iterdir()] == ["me_step1.json"]


def test_a_timer_records_nothing():
    with profiler.Profiler(timer_only=True) as found, profiler.RecordEvent("part"):
        found.step()
    assert found.events == []
    assert found.step_info().startswith("batch_cost")
    event = profiler.RecordEvent("never begun")
    event.end()


@pytest.mark.parametrize(
    ("data", "message"), [(b"\xff", "the file is damaged"), (b'{"a":', "not valid JSON"), (b"[]", "no events")]
)
def test_a_file_of_events_that_is_damaged(tmp_path, data, message):
    (tmp_path / "t.json").write_bytes(data)
    with pytest.raises(FileFormatError, match=message):
        profiler.load_profiler_result(str(tmp_path / "t.json"))
