"""The share of the tests that `dev.py test --fast` runs."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests import shares
from tests.shares import ONE_OF, share

IDS = [f"tests/test_this.py::test_that[{case}]" for case in range(3 * ONE_OF + 1)]


def test_one_case_of_so_many_is_run() -> None:
    assert [len(share(IDS[:n])) for n in (1, ONE_OF, ONE_OF + 1, len(IDS))] == [1, 1, 2, 4]


def test_the_order_of_the_cases_does_not_matter() -> None:
    assert share(IDS) == share(IDS[::-1]) <= {*IDS}


def test_cases_are_not_the_first_ones_only() -> None:
    assert share(IDS) != {*IDS[:4]}


def test_sizes_and_orders_of_a_share(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for fast in (True, False):
        monkeypatch.setattr(shares, "is_fast", lambda fast=fast: fast)
        found.append((shares.some((0, 1, 2, 15, 16, 17, 255)), shares.order(1), shares.order(3)))
    assert found == [((0, 15, 255), 1, 2), ((0, 1, 2, 15, 16, 17, 255), 1, 3)]


@pytest.mark.slow
def test_each_file_has_tests_that_are_run(tmp_path: Path) -> None:
    (tmp_path / "test_cases.py").write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('n', range(30))\ndef test_many(n): pass\n"
        "@pytest.mark.slow\ndef test_long(): pass\n"
        "def test_one(): pass\n"
    )
    root = Path(__file__).parents[1]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.conftest", "--fast"]
    command += ["-c", str(root / "pyproject.toml"), "--rootdir", str(tmp_path), str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert "3 passed, 29 deselected" in done.stdout, done.stdout + done.stderr
