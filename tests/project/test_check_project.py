"""`dy2st check-project`: what a project uses and what differs here, read from sources that nobody runs."""

import json
import os
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from dy2st.cli import main
from dy2st.project import check_project, to_html, to_json, to_text
from dy2st.project.check import _of_names, differences, unlike_paddle
from dy2st.project.sources import LARGEST

ROOT = Path(__file__).parents[2]
MODEL = """
import os, numpy as np, scipy.optimize
import paddle
import paddle.nn as nn
from paddle.nn import functional as F
from paddle import surely_absent
from paddle.surely_absent.below import name as other
from paddle.nn.layer.rnn import *
raise SystemExit("this file was run")

class Net(nn.Layer):
    def forward(self, x, flag: bool, scale=1.0):
        y = F.relu(paddle.nn.Linear(3, 3)(x))
        side = np.sqrt(x.shape[0]) + np.sqrt(scale) + len(x)
        if flag:
            return self.matched(y) + side
        return nn.Quux(y.numpy())

    def matched(self, cost):
        rows = cost * 2
        return scipy.optimize.linear_sum_assignment(rows)

    def never_called(self, z):
        return z.tolist()

@paddle.jit.to_static
def step(x):
    breakpoint()
    return x.sum().item()
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "made_up"
    (folder / "deep").mkdir(parents=True)
    (folder / "net.py").write_text(MODEL)
    (folder / "plain.py").write_text("import os\nx = os.path\n")
    (folder / "deep" / "good.py").write_text(
        "import dy2st as paddle\ny = paddle.heaviside\nz = paddle.nn.ReLU.forward\n"
    )
    return folder


def test_names_that_are_here_and_names_that_are_not(project: Path) -> None:
    found = check_project(project)
    assert found.missing == {
        "paddle.nn.Quux": "paddle.nn.Quux",
        "paddle.surely_absent": "paddle.surely_absent",
        "paddle.surely_absent.below.name": "paddle.surely_absent",
    }
    assert found.names["net.py"]["paddle.nn.functional.relu"] == [13]
    assert found.names["net.py"]["paddle.nn.layer.rnn"] == [8]
    assert "plain.py" not in found.names
    assert found.files_with_all() == 1
    assert "this file was run" not in to_text(found)


def test_names_that_behave_otherwise_are_those_of_the_page(project: Path) -> None:
    found = check_project(project)
    assert found.otherwise["paddle.heaviside"] == "NaN of NaN, as NumPy"
    assert found.otherwise["paddle.nn.functional.relu"] == "NaN of NaN; Paddle gives 0"
    assert "paddle.nn.Linear" not in found.otherwise
    assert unlike_paddle("paddle.nn.functional.conv2d").startswith('`padding="same"`: keeps the dilation')
    assert not unlike_paddle("paddle.nn.SyncBatchNorm.convert_sync_batchnorm")
    page = (ROOT / "docs" / "peers" / "paddle.md").read_text(encoding="utf-8")
    tables = [text.partition("\n\n")[0] for text in page.split("| name | here |")[1:]]
    rows = [row for table in tables for row in table.splitlines() if row.startswith("| `")]
    assert len({how.rpartition(": ")[2] for _, how in differences()}) == len(rows)
    assert {pattern for pattern, _ in differences()} >= {"erfinv", "conv[123]d*", "vision.transforms", "scale"}


def test_rows_of_several_names_and_of_a_condition():
    assert list(_of_names("`a`, `b.c*()`", "how")) == [("a", "how"), ("b.c*", "how")]
    assert list(_of_names("`conv[12]d`, `padding=3`", "how")) == [("conv[12]d", "`padding=3`: how")]
    assert list(_of_names("`numpy()` of bfloat16", "how")) == [("numpy", "of bfloat16: how")]


def test_lines_where_functions_leave_a_program(project: Path) -> None:
    splits = check_project(project).splits["net.py"]
    assert [(s.function, s.line) for s in splits] == [("Net.forward", 17), ("Net.matched", 21), ("step", 28)]
    assert splits[0].what.startswith(".numpy() needs the numbers")
    assert splits[1].what.startswith("scipy.optimize.linear_sum_assignment() takes a tensor")
    assert splits[2].what.startswith("breakpoint()")


def test_text_json_and_a_page(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = project.parent / "page.html"
    assert main(["check-project", str(project), "--html", str(page)]) == 0
    said = capsys.readouterr().out
    assert "2 files use" in said
    assert "paddle.nn.Quux  net.py:17" in said
    assert "paddle.heaviside  NaN of NaN, as NumPy  (deep/good.py:2)" in said
    assert main(["check-project", str(project), "--json"]) == 0
    known = json.loads(capsys.readouterr().out)
    assert known["missing"] == check_project(project).missing
    assert known["splits"]["net.py"][2]["line"] == 28
    text = page.read_text(encoding="utf-8")
    HTMLParser().feed(text)
    assert "<script" not in text
    assert "//" not in text.replace("<!doctype html>", "")


def test_files_that_cannot_or_should_not_be_read(project: Path) -> None:
    (project / "broken.py").write_text("import paddle\ndef f(:\n")
    (project / "latin.py").write_bytes(b"import paddle\nx = '\xe9'\n")
    (project / "nul.py").write_bytes(b"import paddle\n\0")
    (project / "nested.py").write_text("x = " + "-" * 200_000 + "1\n")
    (project / "brackets.py").write_text("x = " + "(" * 5_000 + ")" * 5_000)
    with open(project / "huge.py", "wb") as file:
        file.truncate(LARGEST + 1)
    (project / "deep" / "up").symlink_to(project, target_is_directory=True)
    (project / "link.py").symlink_to("/dev/zero")
    (project / "self.py").symlink_to("self.py")
    os.mkfifo(project / "pipe.py")
    (project / "folder.py").mkdir()
    found = check_project(project)
    assert found.unread["broken.py"].startswith("line 2: ")
    assert found.unread["link.py"] == found.unread["self.py"] == "is a link"
    assert found.unread["pipe.py"] == "is no regular file"
    assert "are not read" in found.unread["huge.py"]
    assert {"latin.py", "nul.py", "nested.py", "brackets.py"} <= set(found.unread)
    assert not any("up/" in path for path in (*found.names, *found.unread))


def test_what_a_project_is_named_stays_text(tmp_path: Path) -> None:
    folder = tmp_path / "<b>bold<b>"
    folder.mkdir()
    (folder / "\x1b[31mred<img src=x>.py").write_text("import paddle\npaddle.surely_absent\n")
    found = check_project(folder)
    assert "<img" not in to_html(found)
    assert "<b>bold" not in to_html(found)
    assert "\x1b" not in to_text(found) + to_html(found) + to_json(found)
    assert "\\x1b[31mred" in to_text(found)


def test_looking_a_name_up_runs_no_program_of_ours(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import paddle.__main__, paddle.__path__.x\nfrom paddle.nn.__init__ import y\n")
    assert set(check_project(tmp_path).missing) == {"paddle.__main__"}


def test_a_folder_that_is_none_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["check-project", str(tmp_path / "absent")]) == 1
    assert capsys.readouterr().err == f"dy2st: there is no folder {tmp_path / 'absent'}\n"


def test_a_file_alone(project: Path) -> None:
    assert list(check_project(project / "deep" / "good.py").names) == ["good.py"]


def test_the_command_imports_nothing_of_the_project(project: Path) -> None:
    (project / "scipy.py").write_text("raise SystemExit('imported')\n")
    said = subprocess.run(
        [sys.executable, "-m", "dy2st", "check-project", "."], cwd=project, capture_output=True, text=True,
        env={**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": str(ROOT)}, check=True,
    )  # fmt: skip
    assert "imported" not in said.stdout + said.stderr
