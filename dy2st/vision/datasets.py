"""`paddle.vision.datasets`: pictures with labels, from files that are on this machine; nothing is downloaded."""

from __future__ import annotations

import io
import math
import tarfile
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dy2st.errors import FileFormatError
from dy2st.files import pickled_state, regular, unpacked
from dy2st.io import Dataset
from dy2st.missing import missing_in
from dy2st.vision.image import get_image_backend, image_load

__path__: list[str] = []
DATA_HOME = str(Path("~/.cache/paddle/dataset").expanduser())
IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def found(path: str | None, default: str, what: str) -> Path:
    """Return where a file is: `path`, or its place below `DATA_HOME`; RuntimeError, which names it, where it is not."""
    target = Path(path) if path is not None else Path(DATA_HOME) / default
    if not target.exists():
        raise RuntimeError(f"{what}: nothing is downloaded here; get {target.name} yourself and put it at {target}")
    return target


class _Pictures(Dataset):
    """Arrays of pictures and their labels."""

    transform: Any
    backend: str

    def _shown(self, picture: np.ndarray, label: Any) -> tuple[Any, Any]:
        image: Any = picture
        if self.backend == "pil":
            image = import_module("PIL.Image").fromarray(picture.astype("uint8"))
        if self.transform is not None:
            image = self.transform(image)
        return image, label


class MNIST(_Pictures):
    """Digits [28, 28], with labels [1], from the four files of Y. LeCun et al. in their IDX format, packed or not.

    Items are pictures of Pillow's, or float32 arrays with the backend "cv2", the default where Pillow is missing.
    FileFormatError says what is wrong with a file that is damaged.
    """

    NAME: ClassVar[str] = "mnist"

    def __init__(
        self, image_path: str | None = None, label_path: str | None = None, mode: str = "train", transform: Any = None,
        download: bool = True, backend: str | None = None,
    ):  # fmt: skip
        if mode.lower() not in ("train", "test"):
            raise ValueError(f"{type(self).__name__}: mode is 'train' or 'test', not {mode!r}")
        self.mode, self.transform, self.backend = mode.lower(), transform, _backend(backend)
        part = "train" if self.mode == "train" else "t10k"
        images, labels = (
            found(path, f"{self.NAME}/{part}-{kind}-ubyte.gz", type(self).__name__)
            for path, kind in ((image_path, "images-idx3"), (label_path, "labels-idx1"))
        )
        self.images, self.labels = _idx(images, 3), _idx(labels, 1).astype("int64").reshape(-1, 1)
        if len(self.images) != len(self.labels):
            raise FileFormatError(f"{images} has {len(self.images)} pictures, and {labels} {len(self.labels)} labels")

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        picture, label = self.images[idx], self.labels[idx]
        return self._shown(picture if self.backend == "pil" else picture.astype("float32"), label)

    def __len__(self) -> int:
        return len(self.labels)


class FashionMNIST(MNIST):
    """Clothes [28, 28], in the format of `MNIST`."""

    NAME = "fashion-mnist"


class Cifar10(_Pictures):
    """Pictures [32, 32, 3] of ten kinds, from the archive of A. Krizhevsky.

    Its pickles are read as data; FileFormatError says what is wrong with an archive that is damaged or holds more.
    """

    ARCHIVE: ClassVar[str] = "cifar/cifar-10-python.tar.gz"
    MEMBERS: ClassVar[dict[str, str]] = {"train": "data_batch", "test": "test_batch"}
    LABELS: ClassVar[str] = "labels"

    def __init__(
        self, data_file: str | None = None, mode: str = "train", transform: Any = None, download: bool = True,
        backend: str | None = None,
    ):  # fmt: skip
        if mode.lower() not in self.MEMBERS:
            raise ValueError(f"{type(self).__name__}: mode is 'train' or 'test', not {mode!r}")
        self.mode, self.transform, self.backend = mode.lower(), transform, _backend(backend)
        self.data: list[tuple[np.ndarray, int]] = []
        wanted = self.MEMBERS[self.mode]
        path = found(data_file, self.ARCHIVE, type(self).__name__)
        with unpacked.opened(path) as (file, _), tarfile.open(fileobj=file) as archive:
            members = [m for m in unpacked.members(archive) if wanted in Path(m.name).name]
            for member in sorted(members, key=lambda m: m.name):
                self.data += _batch(unpacked.member_content(archive, member), self.LABELS)

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        flat, label = self.data[idx]
        picture = flat.reshape(3, 32, 32).transpose(1, 2, 0)
        return self._shown(picture if self.backend == "pil" else picture.astype("float32"), np.array(label, "int64"))

    def __len__(self) -> int:
        return len(self.data)


class Cifar100(Cifar10):
    """Pictures [32, 32, 3] of a hundred kinds."""

    ARCHIVE = "cifar/cifar-100-python.tar.gz"
    MEMBERS: ClassVar[dict[str, str]] = {"train": "train", "test": "test"}
    LABELS = "fine_labels"


class DatasetFolder(Dataset):
    """Files below a folder for each class: items are (sample, number of the class); classes in order of their names.

    Files are those with one of `extensions` (pictures by default), or for which `is_valid_file` is true; `loader` reads
    a sample (`image_load` by default).
    """

    def __init__(
        self, root: str, loader: Callable[[str], Any] | None = None, extensions: Sequence[str] | None = None,
        transform: Any = None, is_valid_file: Callable[[str], bool] | None = None,
    ):  # fmt: skip
        self.root, self.transform, self.loader = root, transform, loader or _loaded
        self.extensions = None if is_valid_file else tuple(extensions or IMG_EXTENSIONS)
        valid = _valid(extensions, is_valid_file)
        self.classes = sorted(entry.name for entry in Path(root).iterdir() if entry.is_dir())
        self.class_to_idx = {name: i for i, name in enumerate(self.classes)}
        self.samples = [
            (path, number) for name, number in self.class_to_idx.items() for path in _files(Path(root) / name, valid)
        ]
        if not self.samples:
            raise RuntimeError(f"{type(self).__name__}: no folder below {root} has a file that is taken")
        self.targets = [number for _, number in self.samples]

    def __getitem__(self, index: int) -> Any:
        path, target = self.samples[index]
        sample = self.loader(path)
        return (sample if self.transform is None else self.transform(sample)), target

    def __len__(self) -> int:
        return len(self.samples)


class ImageFolder(Dataset):
    """All files below a folder, without classes: items are lists of one sample; the rest is as in `DatasetFolder`."""

    def __init__(
        self, root: str, loader: Callable[[str], Any] | None = None, extensions: Sequence[str] | None = None,
        transform: Any = None, is_valid_file: Callable[[str], bool] | None = None,
    ):  # fmt: skip
        self.root, self.transform, self.loader = root, transform, loader or _loaded
        self.samples = _files(Path(root), _valid(extensions, is_valid_file))
        if not self.samples:
            raise RuntimeError(f"{type(self).__name__}: no file below {root} is taken")

    def __getitem__(self, index: int) -> list[Any]:
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self) -> int:
        return len(self.samples)


class Flowers(_Pictures):
    """Flowers of 102 kinds, from the archive of pictures and the two MATLAB files beside it, which SciPy reads."""

    def __init__(
        self, data_file: str | None = None, label_file: str | None = None, setid_file: str | None = None,
        mode: str = "train", transform: Any = None, download: bool = True, backend: str | None = None,
    ):  # fmt: skip
        if mode.lower() not in (parts := {"train": "tstid", "test": "trnid", "valid": "valid"}):
            raise ValueError(f"Flowers: mode is 'train', 'test' or 'valid', not {mode!r}")
        self.transform, self.backend = transform, _backend(backend)
        paths = [
            found(path, f"flowers/{name}", "Flowers")
            for path, name in (
                (data_file, "102flowers.tgz"),
                (label_file, "imagelabels.mat"),
                (setid_file, "setid.mat"),
            )
        ]
        self.labels, self.indexes = _row(paths[1], "labels"), _row(paths[2], parts[mode.lower()])
        self.archive, self.members = _opened(paths[0])

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        number = self.indexes[idx]
        picture = _picture(_member(self.archive, self.members, f"jpg/image_{number:05d}.jpg"))
        return self._shown(picture, np.array([self.labels[number - 1]], "int64"))

    def __len__(self) -> int:
        return len(self.indexes)


class VOC2012(_Pictures):
    """Pictures and their pixels' classes, from the archive of the PASCAL challenge of 2012."""

    FOLDER = "VOCdevkit/VOC2012"

    def __init__(
        self, data_file: str | None = None, mode: str = "train", transform: Any = None, download: bool = True,
        backend: str | None = None,
    ):  # fmt: skip
        if mode.lower() not in (parts := {"train": "trainval", "test": "train", "valid": "val"}):
            raise ValueError(f"VOC2012: mode is 'train', 'test' or 'valid', not {mode!r}")
        self.transform, self.backend = transform, _backend(backend)
        self.archive, self.members = _opened(found(data_file, "voc2012/VOCtrainval_11-May-2012.tar", "VOC2012"))
        listed = f"{self.FOLDER}/ImageSets/Segmentation/{parts[mode.lower()]}.txt"
        with regular.errors_of(self.archive.name):
            self.names = _member(self.archive, self.members, listed).read().decode().split()

    def __getitem__(self, idx: int) -> tuple[Any, Any]:
        pair = [f"JPEGImages/{self.names[idx]}.jpg", f"SegmentationClass/{self.names[idx]}.png"]
        picture, label = (_picture(_member(self.archive, self.members, f"{self.FOLDER}/{p}")) for p in pair)
        return self._shown(picture, label)

    def __len__(self) -> int:
        return len(self.names)


def _backend(asked: str | None) -> str:
    if asked not in (None, "pil", "cv2"):
        raise ValueError(f"the backend of a dataset is 'pil' or 'cv2', not {asked!r}")
    if asked is not None:
        return asked
    return "pil" if get_image_backend() == "pil" and find_spec("PIL") is not None else "cv2"


def _idx(path: Path, axes: int) -> np.ndarray:
    """Return the bytes of a file whose head says how many axes they have and how long these are."""
    with unpacked.opened(path) as opened:
        data = unpacked.content(*opened)
        head = 4 + 4 * axes
        if data[:4] != b"\0\0\x08" + bytes([axes]) or len(data) < head:
            raise FileFormatError(f"it is no file of bytes in the IDX format with {axes} axes")
        shape = [int(extent) for extent in np.frombuffer(data[4:head], ">u4")]
        if math.prod(shape) != len(data) - head:
            raise FileFormatError(f"it says it has the shape {shape}, and holds {len(data) - head} bytes")
        return np.frombuffer(data, "uint8", offset=head).reshape(shape)


def _batch(content: bytes, labels: str) -> list[tuple[np.ndarray, int]]:
    """Return the flat pictures of a pickle, each with its label."""
    batch = pickled_state.Reader(len(content), bytes_are_texts=True).read(io.BytesIO(content))
    data, given = (batch.get("data"), batch.get(labels)) if isinstance(batch, dict) else (None, None)
    if not isinstance(data, np.ndarray) or data.dtype != np.uint8 or data.ndim != 2 or data.shape[1] != 3 * 32 * 32:
        raise FileFormatError("a pickle in it has no pictures of 32 x 32 in three colours under 'data'")
    if not isinstance(given, list) or len(given) != len(data) or not all(type(label) is int for label in given):
        raise FileFormatError(f"a pickle in it has no list of {len(data)} numbers under {labels!r}")
    return list(zip(data, given, strict=True))


def _row(path: Path, name: str) -> np.ndarray:
    """Return the first row of a matrix of whole numbers in a MATLAB file."""
    read = import_module("scipy.io").loadmat
    with unpacked.opened(path) as opened:
        try:
            found = read(io.BytesIO(unpacked.content(*opened)), variable_names=[name]).get(name)
        except Exception as error:  # SciPy raises many kinds for a file that is damaged
            raise FileFormatError(f"it is no MATLAB file that can be read: {error}") from error
        if not isinstance(found, np.ndarray) or found.ndim != 2 or not found.size or found.dtype.kind not in "iu":
            raise FileFormatError(f"it has no row of whole numbers {name!r}")
        return found[0]


def _opened(path: Path) -> tuple[Any, dict[str, Any]]:
    with unpacked.opened(path):
        archive = tarfile.open(path)  # noqa: SIM115 (it stays open for the items)
        return archive, {member.name: member for member in unpacked.members(archive)}


def _member(archive: Any, members: dict[str, Any], name: str) -> io.BytesIO:
    with regular.errors_of(archive.name):
        if name not in members:
            raise FileFormatError(f"there is no file {name} in it")
        return io.BytesIO(unpacked.member_content(archive, members[name]))


def _picture(file: Any) -> np.ndarray:
    return np.array(import_module("PIL.Image").open(file))


def pil_loader(path: str) -> Any:
    """Return a picture of Pillow's in RGB, whatever its file holds; ModuleNotFoundError where Pillow is missing."""
    with import_module("PIL.Image").open(path) as picture:
        return picture.convert("RGB")


def _loaded(path: str) -> Any:
    return pil_loader(path) if get_image_backend() == "pil" else image_load(path)


def _valid(extensions: Sequence[str] | None, chosen: Callable[[str], bool] | None) -> Callable[[str], bool]:
    if extensions is not None and chosen is not None:
        raise ValueError("give extensions or is_valid_file, not both")
    ends = tuple(extensions or IMG_EXTENSIONS)
    return chosen or (lambda path: path.lower().endswith(ends))


def _files(folder: Path, valid: Callable[[str], bool]) -> list[str]:
    return [str(p) for p in sorted(folder.rglob("*")) if p.is_file() and valid(str(p))]


__getattr__ = missing_in(__name__)
