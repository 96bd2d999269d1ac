"""`set_code_level` and `set_verbosity` show what is converted."""

import pytest

import dy2st as paddle


@pytest.fixture(autouse=True)
def quiet():
    yield
    paddle.jit.set_code_level(0)
    paddle.jit.set_verbosity(0)


def traced():
    def absolute(x):
        if x.sum() > 0:
            y = x
        else:
            y = -x
        return y

    return paddle.jit.to_static(absolute, full_graph=True)(paddle.to_tensor([-1.0]))


@pytest.mark.proves("jit.set_code_level")
def test_converted_source_is_shown_where_asked_for(capfd):
    paddle.jit.set_code_level(100, also_to_stdout=True)
    traced()
    shown = capfd.readouterr()
    for text in shown:
        assert "`absolute` (" in text
        assert "if_(" in text
    paddle.jit.set_code_level(0)
    traced()
    assert capfd.readouterr() == ("", "")


@pytest.mark.proves("jit.set_verbosity")
def test_events_name_functions_and_lines(capfd):
    paddle.jit.set_verbosity(1)
    traced()
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "converted `absolute` (" in shown.err
    assert "if_(" not in shown.err


def test_a_level_is_a_number():
    with pytest.raises(TypeError, match="the level must be an int, not 'all'"):
        paddle.jit.set_code_level("all")
