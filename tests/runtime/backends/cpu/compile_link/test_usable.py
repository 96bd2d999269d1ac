"""How many threads native code takes where nobody says: variables, bound CPUs, quotas of control groups."""

import os
import subprocess
import sys

import pytest

from dy2st.runtime.backends.cpu.compile_link.cpu_count import usable_cpus, usable_threads


@pytest.fixture
def four_cpus(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)


def _groups(root, text):
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)


def test_the_own_variable_goes_before_the_common_one(monkeypatch):
    monkeypatch.setenv("DY2ST_NUM_THREADS", "3")
    monkeypatch.setenv("OMP_NUM_THREADS", "5,2")
    assert usable_threads() == 3
    monkeypatch.delenv("DY2ST_NUM_THREADS")
    assert usable_threads() == 5


@pytest.mark.parametrize("said", ["many", "0", "-1", "2.5"])
def test_the_own_variable_is_checked(monkeypatch, said):
    monkeypatch.setenv("DY2ST_NUM_THREADS", said)
    with pytest.raises(ValueError, match=f"DY2ST_NUM_THREADS is a whole number of at least 1, not '{said}'"):
        usable_threads()


def test_a_common_variable_that_says_nothing_is_passed_over(monkeypatch):
    monkeypatch.delenv("DY2ST_NUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    assert usable_threads() == usable_cpus()


def test_without_a_limit_all_bound_cpus_count(tmp_path, four_cpus):
    assert usable_cpus(str(tmp_path)) == 4


def test_the_quota_of_a_group_around_counts(tmp_path, four_cpus):
    _groups(tmp_path, "0::/outer/inner\n")
    (tmp_path / "sys/fs/cgroup/outer/inner").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/outer/inner/cpu.max").write_text("max 100000\n")
    assert usable_cpus(str(tmp_path)) == 4
    (tmp_path / "sys/fs/cgroup/outer/cpu.max").write_text("150000 100000\n")
    assert usable_cpus(str(tmp_path)) == 2
    (tmp_path / "sys/fs/cgroup/outer/inner/cpu.max").write_text("20000 100000\n")
    assert usable_cpus(str(tmp_path)) == 1


def test_the_quota_of_the_first_version_counts(tmp_path, four_cpus):
    _groups(tmp_path, "4:cpu,cpuacct:/job\n3:memory:/job\n")
    group = tmp_path / "sys/fs/cgroup/cpu/job"
    group.mkdir(parents=True)
    (group / "cpu.cfs_quota_us").write_text("300000\n")
    (group / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cpus(str(tmp_path)) == 3
    (group / "cpu.cfs_quota_us").write_text("-1\n")
    assert usable_cpus(str(tmp_path)) == 4


def _said(**variables):
    code = "import dy2st; print(dy2st.get_num_threads())"
    environment = {k: v for k, v in os.environ.items() if not k.endswith("_NUM_THREADS")} | variables
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)


@pytest.mark.slow
def test_a_process_asks_its_environment():
    assert _said(DY2ST_NUM_THREADS="1").stdout == "1\n"
    assert "ValueError: DY2ST_NUM_THREADS is a whole number" in _said(DY2ST_NUM_THREADS="x").stderr


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="a process is bound to CPUs by Linux")
def test_a_process_that_is_bound_to_one_cpu_has_one_thread():
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(bound)})
    try:
        assert _said().stdout == "1\n"
    finally:
        os.sched_setaffinity(0, bound)
