"""What scripts for parameter servers ask of fleet, where there are none."""

import numpy as np
import pytest

import dy2st as paddle
from dy2st.distributed import fleet


def test_there_are_no_servers(tmp_path):
    assert not fleet.is_server()
    with pytest.raises(RuntimeError, match="this process is no server"):
        fleet.init_server("folder")
    with pytest.raises(RuntimeError, match="this process is no server"):
        fleet.run_server()
    assert fleet.util.all_reduce(3, "sum") == 3
    assert fleet.util.all_gather(3) == [3]
    assert fleet.util.barrier() is None
    assert fleet.util.get_file_shard(["a", "b"]) == ["a", "b"]
    with pytest.raises(TypeError, match="takes a list of files"):
        fleet.util.get_file_shard("a")


def test_rank_0_prints(capsys):
    fleet.util.print_on_rank("here", 0)
    fleet.util.print_on_rank("there", 1)
    assert capsys.readouterr().out == "here\n"


def test_values_of_a_program_below_a_folder(tmp_path):
    paddle.enable_static()
    try:
        main, start = paddle.static.Program(), paddle.static.Program()
        with paddle.static.scope_guard(paddle.static.Scope()), paddle.static.program_guard(main, start):
            x = paddle.static.data("x", [2, 3])
            out = paddle.static.nn.fc(x, 2)
            run, feed = paddle.static.Executor(), {"x": np.ones((2, 3), "float32")}
            run.run(start)
            (before,) = run.run(main, feed=feed, fetch_list=[out])
            fleet.save_persistables(run, str(tmp_path))
            fleet.save_inference_model(run, str(tmp_path), ["x"], [out])
            main.set_state_dict({name: np.zeros(value.shape, "float32") for name, value in main.state_dict().items()})
            fleet.load_model(str(tmp_path))
            np.testing.assert_array_equal(run.run(main, feed=feed, fetch_list=[out])[0], before)
            program, feeds, fetches = paddle.static.load_inference_model(str(tmp_path / "model"), run)
            np.testing.assert_array_equal(run.run(program, feed=feed, fetch_list=fetches)[0], before)
            assert feeds == ["x"]
    finally:
        paddle.disable_static()


class Words(fleet.MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            for part in (line or "5 6;7").split(";"):
                yield [("words", [int(word) for word in part.split()]), ("label", [1])]

        return samples


def test_lines_of_numbers(capsys, monkeypatch):
    maker = Words()
    maker.set_batch(2)
    maker.run_from_memory()
    assert capsys.readouterr().out == "2 5 6 1 1\n1 7 1 1\n"
    monkeypatch.setattr("sys.stdin", ["1;2;3"])
    maker.run_from_stdin()
    assert capsys.readouterr().out == "1 1 1 1\n1 2 1 1\n1 3 1 1\n"
    with pytest.raises(ValueError, match="the slot 'words' needs numbers"):
        maker._gen_str([("words", [])])
    with pytest.raises(ValueError, match="a sample is a list"):
        maker._gen_str("words")
    assert fleet.MultiSlotStringDataGenerator()._gen_str([("a", ["x", "y"])]) == "2 x y\n"
    with pytest.raises(NotImplementedError, match=r"no generate_sample\(line\)"):
        fleet.DataGenerator().generate_sample("")


def test_names_that_projects_import():
    from dy2st.vision.transforms import functional, transforms

    core = paddle.framework.core
    core.set_prim_eager_enabled(True)
    core._set_prim_backward_blacklist("relu")
    assert (core.is_compiled_with_mkldnn(), core.default_cpu_generator()) == (False, core.default_generator())
    assert paddle.distributed.parallel.parallel_helper._is_parallel_ctx_initialized() in (True, False)
    paddle.distributed.parallel.sync_params_buffers(paddle.nn.Linear(1, 1))
    picture = np.zeros((4, 6, 3), "uint8")
    assert functional._is_numpy_image(picture)
    assert not functional._is_tensor_image(picture)
    assert not functional._is_pil_image(picture)
    assert transforms._get_image_size(picture) == (6, 4)
    assert paddle.nn.layer.norm._BatchNormBase in paddle.nn.BatchNorm2D.__mro__
