"""The adapter for AutoGraph's reference tests: it sees agreement and difference; and what their tests give, if here."""

import os
from pathlib import Path

import pytest

from tests.peers import autograph

DIRECTORY = os.environ.get("DY2ST_AUTOGRAPH")
KNOWN = {
    "call_to_numpy_function_test.test_basic",
    "generator_test.test_basic_generator",
    "generator_test.test_generator_in_for",
    "generator_test.test_generator_in_while",
    "loop_created_variables_test.test_while_creates_var",
    "loop_created_variables_test.test_while_creates_var_illegal_tf",
    "loop_distributed_test.test_basic",
}
"""What differs, and why: docs/peers/autograph.md."""

TEXT = """
from absl.testing import parameterized
import tensorflow as tf
import reference_test_base


def double(x):
  s = x
  if x > 0:
    s = s * 2
  print('s')
  return s


def append(l, x):
  if x > 0:
    l.append(x)
  return l


def never(x):
  while True:
    x = x + 1


class Test(reference_test_base.TestCase, parameterized.TestCase):

  @parameterized.parameters(1, -1)
  def test_double(self, x):
    self.assertFunctionMatchesEager(double, tf.constant(x))

  def test_refused_there(self):
    with self.assertRaisesRegex(NotImplementedError, 'no lists'):
      tf.function(append)([], tf.constant(1))

  def test_never(self):
    tf.function(never)(tf.constant(1))

  def test_sparse(self):
    self.assertFunctionMatchesEager(lambda: tf.SparseTensor(1))

  def test_skipped(self):
    self.skipTest('there')

  def test_fails(self):
    raise ValueError('in the test')
"""


@pytest.fixture
def their_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(autograph, "SECONDS", 0.5)
    path = tmp_path / "own_reference_test.py"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.mark.slow
def test_every_test_gets_its_verdict(their_file: Path) -> None:
    found = {f"{v.method}({v.parameters})": v for v in autograph.verdicts(their_file)}
    assert {name: v.kind for name, v in found.items()} == {
        "test_double(1)": "agrees",
        "test_double(-1)": "agrees",
        "test_refused_there()": "agrees",
        "test_never()": "endless",
        "test_sparse()": "own type",
        "test_skipped()": "nothing run",
        "test_fails()": "differs",
    }
    assert found["test_fails()"].reason == "the test itself raises ValueError: in the test"
    assert autograph.files(their_file.parent) == [their_file]


@pytest.mark.parametrize(
    ("static", "reason"),
    [
        (lambda x: x * 3, "eager returns 2, static 3"),
        (lambda x: float(x * 2), "eager returns 2, static 2.0"),
        (lambda x: print("other") or x * 2, "eager prints '', static 'other\\n'"),
        (lambda x: [][x], "eager returns 2, static raises IndexError: 'list index out of range'"),
    ],
)
def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch, static: object, reason: str) -> None:
    monkeypatch.setattr(autograph.paddle.jit, "to_static", lambda f, full_graph: static)
    case = autograph.TestCase()
    case.verdict = autograph.Verdict("file", "method", "")
    case.assertFunctionMatchesEager(twice, 1)
    assert (case.verdict.kind, case.verdict.reason) == ("differs", f"twice, first call: {reason}")


def twice(x: int) -> int:
    return x * 2


@pytest.mark.slow
@pytest.mark.skipif(DIRECTORY is None, reason="DY2ST_AUTOGRAPH names no checkout of AutoGraph's reference tests")
def test_their_tests_agree_as_documented() -> None:
    assert DIRECTORY is not None
    differing = {f"{v.file}.{v.method}" for p in autograph.files(Path(DIRECTORY)) for v in autograph.verdicts(p)
                 if v.kind == "differs"}  # fmt: skip
    assert differing == KNOWN
