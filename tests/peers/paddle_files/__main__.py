"""Save small models with PaddlePaddle, with inputs and what they gave, for `tests/paddle_files/`.

It runs where PaddlePaddle is: 2.6 writes `.pdmodel`, 3.x writes `.json`. Parameters are rounded, so that files pack
well; source lines, which name files of this machine, are taken out of `.pdmodel`.

    python -m tests.peers.paddle_files ARCHIVE.zip [NAME ...]    other models in the archive stay
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import paddle

from tests.peers.paddle_files import expressions, networks, operations, raw  # noqa: F401 (they enter their cases)
from tests.peers.paddle_files.cases import CASES


def rounded(layer: Any) -> None:
    for p in layer.parameters():
        p.set_value(p.numpy().round(2))


def without_lines(path: Path) -> None:
    """Take the source lines out of a `.pdmodel`, and attributes that only choose kernels."""
    from paddle.base.proto import framework_pb2

    program = framework_pb2.ProgramDesc.FromString(path.read_bytes())
    for block in program.blocks:
        for op in block.ops:
            kept = [
                a for a in op.attrs if not a.name.startswith(("op_", "mkldnn", "use_mkldnn", "Scale_", "force_fp32"))
            ]
            del op.attrs[:]
            op.attrs.extend(kept)
    path.write_bytes(program.SerializeToString())


def write_static(made: Any, specs: list[Any], target: Path) -> None:
    paddle.enable_static()
    with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
        feeds = [paddle.static.data(one.name, one.shape, one.dtype) for one in specs]
        fetches = made(*feeds)
        exe = paddle.static.Executor(paddle.CPUPlace())
        paddle.static.save_inference_model(str(target), feeds, fetches, exe)


def write(name: str, folder: Path) -> None:
    paddle.seed(1)
    made, specs, runs = CASES[name]
    target = folder / name.lower()
    if hasattr(made, "is_static"):
        write_static(made, specs, target)
    else:
        layer = made() if isinstance(made, type) else None
        if layer is not None:
            rounded(layer)
            layer.eval()
        called = layer if layer is not None else paddle.jit.to_static(made, input_spec=specs, full_graph=True)
        paddle.jit.save(called, str(target), input_spec=specs)
    arrays: dict[str, Any] = {}
    model = target.with_suffix(".json") if target.with_suffix(".json").exists() else target.with_suffix(".pdmodel")
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    program, feeds, fetches = paddle.static.load_inference_model(str(target), exe)
    for k, inputs in enumerate(runs):
        by_name = {one.name: x for one, x in zip(specs, inputs, strict=True)}
        arrays.update({f"{k}.in.{name}": x for name, x in by_name.items()})
        found = exe.run(program, feed={name: by_name[name] for name in feeds}, fetch_list=fetches)
        arrays.update({f"{k}.out.{i}": out for i, out in enumerate(found)})
    paddle.disable_static()
    arrays["inputs"] = np.array(feeds)
    in_pir = model.suffix == ".json"
    arrays["outputs"] = np.array([f"fetch_name_{i}" if in_pir else v.name for i, v in enumerate(fetches)])
    np.savez(target.with_suffix(".npz"), **arrays)
    target.with_name(target.name + ".pdiparams.info").unlink(missing_ok=True)
    if model.suffix == ".pdmodel":
        without_lines(model)


def main() -> None:
    archive = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        if sys.argv[2:] and archive.exists():
            zipfile.ZipFile(archive).extractall(folder)
        for name in sys.argv[2:] or CASES:
            paddle.disable_static()
            try:
                write(name, folder)
            except Exception as error:  # a model that this release cannot save or run is left out, and named
                print(f"{name}: {type(error).__name__}: {error}")
                for part in folder.glob(f"{name.lower()}.*"):
                    part.unlink()
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
            for path in sorted(folder.iterdir()):
                packed.writestr(zipfile.ZipInfo(path.name), path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    print(f"{archive}: {archive.stat().st_size:,} bytes, PaddlePaddle {paddle.__version__}")


if __name__ == "__main__":
    main()
