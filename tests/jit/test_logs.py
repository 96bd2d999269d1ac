"""Logging in a function: each call of a Program logs what an eager one does, at the user's line, and no trace logs."""

import logging
from pathlib import Path

import pytest

import dy2st as paddle
from dy2st.errors import TraceError

LOG = logging.getLogger("of_these_tests")
T = paddle.to_tensor


def forward(x):
    if x.sum() > 0:
        LOG.info("the sum of %s is %.1f", x.shape, x.sum().item())
    else:
        LOG.warning(f"below {x.sum().item():.0f}")
    LOG.debug("once %s", "more")
    logging.getLogger("of_these_tests").log(logging.ERROR, "%(n)d rows", {"n": x.shape[0]})
    logging.error("of the root")
    return x * 2


def records(caplog, function, level):
    caplog.clear()
    with caplog.at_level(level, logger="of_these_tests"):
        for x in ([1.0], [-2.0, 1.0], [3.0]):
            function(T(x))
    return [(r.name, r.levelno, r.getMessage(), r.filename, r.lineno) for r in caplog.records]


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_each_call_logs_what_an_eager_one_does(caplog, level):
    static = paddle.jit.to_static(forward, full_graph=True)
    want = records(caplog, forward, level)
    assert len(want) == (12 if level == logging.DEBUG else 7)
    assert records(caplog, static, level) == want
    assert records(caplog, static, level) == want
    assert len(static.program_cache) == 1


def test_a_level_set_later_counts(caplog):
    static = paddle.jit.to_static(forward, full_graph=True)
    assert not records(caplog, static, logging.CRITICAL)
    assert records(caplog, static, logging.DEBUG) == records(caplog, forward, logging.DEBUG)


def test_a_loaded_function_logs(caplog, tmp_path: Path):
    spec = [paddle.static.InputSpec([None], "float32")]
    paddle.jit.save(paddle.jit.to_static(forward), tmp_path / "m", input_spec=spec)
    found = records(caplog, paddle.jit.load(tmp_path / "m"), logging.DEBUG)
    assert [r[:3] for r in found] == [r[:3] for r in records(caplog, forward, logging.DEBUG)]


class Own(logging.Logger):
    def info(self, msg, *args, **keywords):
        super().info(f"own {msg}", *args, **keywords)


@pytest.mark.parametrize(("use", "message"), [
    (lambda: LOG.info("x", exc_info=True), "logging with exc_info"),
    (lambda: LOG.log("INFO", "x"), "a level that is no number"),
    (lambda: logging.Logger("unknown").info("x"), "has an effect"),
])  # fmt: skip
def test_what_a_program_does_not_log(use, message):
    def f(x):
        use()
        return x

    with pytest.raises(TraceError, match=message):
        paddle.jit.to_static(f, full_graph=True)(T([1.0]))


def test_a_logger_with_a_method_of_its_own(caplog):
    log = Own("own")
    log.addHandler(caplog.handler)
    log.setLevel(logging.INFO)

    def f(x):
        log.info("%s", x.shape)
        return x

    with pytest.raises(TraceError, match="has an effect"):
        paddle.jit.to_static(f, full_graph=True)(T([1.0]))
