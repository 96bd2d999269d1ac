"""State that torch saved (`torch.save`: `.pt`, `.pth`, `.bin`), read without unpickling and without torch.

    archive (a zip, since torch 1.6)        stream (before)
    NAME/data.pkl    the pickle             magic number, version, facts of the machine: three pickles
    NAME/byteorder   little or big          the pickle
    NAME/data/KEY    a storage's bytes      a pickle of the storages' keys; of each its length and its bytes

The pickle has tensors as calls of `_rebuild_tensor_v2(storage, offset, shape, strides, ...)`, with a persistent id in
the storage's place. Functions of this file stand for the few calls that occur (`pickle_machine.py`): they note what is
said, and when the pickle is over tensors are made of the bytes that are there, none of them outside of its storage.
"""

from __future__ import annotations

import io
import os
from typing import Any, BinaryIO

from dy2st.errors import FileFormatError
from dy2st.files import regular
from dy2st.files.pickle_machine import Global, Machine
from dy2st.files.pickled_state import NDARRAY, Named, Reader
from dy2st.files.stored_zip import START, Archive
from dy2st.files.torch_storages import DTYPES, Maker, Storage, TensorSaid

MAGIC = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
"""How a file begins that torch before 1.6 saved: the pickle of a number of 80 bits."""
_VERSION = 1001
_MAX_STORAGES = 100_000
_SPARE = 1 << 20
"""How many bytes tensors may have beside the file's own, those that repeat elements among them."""
_STORAGES = {
    Global("torch", f"{name}Storage"): dtype
    for name, dtype in {
        "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
        "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool",
        "ComplexFloat": "complex64", "ComplexDouble": "complex128",
    }.items()
}  # fmt: skip
_UNTYPED = (Global("torch", "UntypedStorage"), Global("torch.storage", "UntypedStorage"))
_DTYPES = {Global("torch", name): name for name in DTYPES}


def begins(start: bytes) -> bool:
    """Return whether a file that begins so is one of torch's."""
    return start.startswith((START, MAGIC))


def load(path: str | os.PathLike[str]) -> Any:
    """Return the dicts, lists, tuples, numbers and texts that torch saved to `path`, tensors as `Named` arrays.

    FileFormatError says in one line what is wrong with a file that is damaged, or that holds anything else.
    """
    with regular.errors_of(path), regular.opened(path) as (file, size):
        start = file.read(len(MAGIC))
        return _of_archive(file, size) if start.startswith(START) else _of_stream(file, size)


def _of_archive(file: BinaryIO, size: int) -> Any:
    archive = Archive(file, size)
    root = next(iter(archive.files), "").split("/")[0]
    if f"{root}/data.pkl" not in archive.files:
        raise FileFormatError("a zip archive that torch.save has not written: it has no data.pkl")
    if f"{root}/constants.pkl" in archive.files:
        raise FileFormatError("a TorchScript archive, which holds code: save the module's state_dict() with torch.save")
    order = archive.read(f"{root}/byteorder") if f"{root}/byteorder" in archive.files else b"little"
    if order not in (b"little", b"big"):
        raise FileFormatError(f"the archive's byteorder is {bytes(order)!r:.40}, neither little nor big")
    data = archive.read(f"{root}/data.pkl")
    reader = _Reader(len(data), size)
    found = reader.run(io.BytesIO(data), len(data))
    reader.maker = Maker(lambda key: archive.read(f"{root}/data/{key}"), order == b"big", 2 * size + _SPARE)
    return reader.finished(found, 0, {})


def _of_stream(file: BinaryIO, size: int) -> Any:
    def pickled() -> Any:
        return reader.run(file, size - file.tell(), goes_on=True)

    reader = _Reader(size, size)
    version, machine = pickled(), pickled()
    if version != _VERSION or type(machine) is not dict:
        raise FileFormatError(f"a torch file of the version {version!r:.40}, which is not {_VERSION}")
    found, keys = pickled(), pickled()
    if type(keys) is not list or len(keys) > _MAX_STORAGES or not all(type(key) is str for key in keys):
        raise FileFormatError("the list of the file's storages is none")
    big = machine.get("little_endian") is False
    places: dict[str, tuple[int, int]] = {}
    for key in keys:
        said = reader.storages.get(key)
        count = int.from_bytes(file.read(8), "big" if big else "little")
        if said is None or key in places or count != said.count:
            raise FileFormatError(f"the storage {key!r:.40} is not what the file's pickle says of it")
        places[key] = file.tell(), said.size
        file.seek(said.size, os.SEEK_CUR)
        if file.tell() > size:
            raise FileFormatError(f"the storage {key!r:.40} reaches over the file's end")
    if file.tell() != size:
        raise FileFormatError("there are bytes behind the file's storages")

    def read(key: str) -> bytearray:
        begin, length = places.get(key, (0, 0))
        file.seek(begin)
        return bytearray(file.read(length))

    reader.maker = Maker(read, big, 2 * size + _SPARE)
    return reader.finished(found, 0, {})


class _TorchMachine(Machine):
    """The machine, with storages: objects outside of the pickle, which it calls by a persistent id."""

    def __init__(self, reader: _Reader):
        super().__init__(reader.calls, (NDARRAY, *_STORAGES, *_UNTYPED, *_DTYPES), reader.build)
        self.reader = reader

    def op_binpersid(self, _: None) -> None:
        self.stack.append(self.reader.storage(self.pop(tuple)))

    def push_global(self, module: str, name: str) -> None:
        named = Global(module, name)
        if named not in self.calls and named not in self.classes:
            raise FileFormatError(
                f"the pickle holds more than data: it names {str(named)!r:.80}, which is not looked up;"
                " save tensors, numbers and texts alone: module.state_dict(), not the module"
            )
        self.stack.append(named)


class _Reader(Reader):
    """Makes what torch pickled; `maker` makes the tensors, once the storages can be read."""

    maker: Maker

    def __init__(self, pickle_size: int, size: int):
        super().__init__(pickle_size)
        self.left = 2 * size
        self.storages: dict[str, Storage] = {}
        self.named: dict[int, Named] = {}
        self.calls |= {
            Global("torch._utils", "_rebuild_tensor"): self.tensor,
            Global("torch._utils", "_rebuild_tensor_v2"): self.tensor,
            Global("torch._utils", "_rebuild_tensor_v3"): self.typed_tensor,
            Global("torch._utils", "_rebuild_parameter"): _parameter,
            Global("torch._utils", "_rebuild_parameter_with_state"): _parameter,
            Global("torch", "Size"): _size,
            Global("torch", "device"): _device,
        }

    def run(self, file: BinaryIO, size: int, goes_on: bool = False) -> Any:
        """Return what one pickle makes, with what it says of tensors in their places."""
        return _TorchMachine(self).run(file, size, goes_on)

    def storage(self, said: tuple[Any, ...]) -> Storage:
        """Return what a persistent id says: ("storage", class, key, device, length), in streams also a view's place."""
        if not 5 <= len(said) <= 6 or said[0] != "storage" or said[5:] not in ((), (None,)):
            raise FileFormatError(f"the pickle names an object {said[:1]!r:.60} outside of it that is no storage")
        kind, key, count = said[1], said[2], said[4]
        if kind not in _STORAGES and kind not in _UNTYPED:
            raise FileFormatError(f"a storage of the kind {str(kind)!r:.60} is not read")
        if type(key) is not str or type(count) is not int or not 0 <= count < 1 << 60:
            raise FileFormatError(f"a storage has the length {count!r:.40}")
        made = Storage(key, _STORAGES.get(kind, "uint8"), count)
        if self.storages.setdefault(key, made) != made:
            raise FileFormatError(f"the pickle says two things of the storage {key!r:.40}")
        return made

    def tensor(self, storage: Any, offset: Any, shape: Any, strides: Any, *rest: Any) -> TensorSaid:
        """Note a tensor: of what follows the strides (needs a gradient, hooks, ...) nothing is kept."""
        if not isinstance(storage, Storage):
            raise FileFormatError("the pickle has a tensor without a storage")
        return TensorSaid(storage, offset, shape, strides, storage.dtype)

    def typed_tensor(
        self, storage: Any, offset: Any, shape: Any, strides: Any, needs_grad: Any, hooks: Any, dtype: Any, *rest: Any
    ) -> TensorSaid:
        """Note a tensor of a dtype without a class of storages."""
        if not isinstance(storage, Storage) or not isinstance(dtype, Global):
            raise FileFormatError("the pickle has a tensor without a storage or a dtype")
        return TensorSaid(storage, offset, shape, strides, _DTYPES[dtype])

    def build(self, made: Any, state: Any) -> None:
        """Skip the attribute `_metadata` of a state dict, which has the versions of its modules."""
        if not (type(made) is dict and type(state) is dict and state.keys() <= {"_metadata"}):
            super().build(made, state)

    def leaf(self, value: Any) -> Any:
        """Return the array of a tensor, the same object for the same part of a storage."""
        if isinstance(value, TensorSaid):
            array = self.maker.array(value)
            return self.named.setdefault(id(array), Named("", array))
        if isinstance(value, Storage):
            raise FileFormatError("the pickle holds a storage that is no tensor's")
        return super().leaf(value)

    def pair(self, made: tuple[Any, Any]) -> Any:
        """Return a tuple as it is: it is no named array."""
        return made


def _parameter(data: Any, *rest: Any) -> Any:
    if not isinstance(data, TensorSaid):
        raise FileFormatError("the pickle has a parameter that is no tensor")
    return data


def _size(numbers: Any) -> Any:
    if not isinstance(numbers, tuple):
        raise FileFormatError("the pickle has a torch.Size that is no tuple")
    return numbers


def _device(kind: Any, number: Any = None) -> str:
    if type(kind) is not str or not (number is None or type(number) is int):
        raise FileFormatError("the pickle has a torch.device that is none")
    return kind if number is None else f"{kind}:{number}"
