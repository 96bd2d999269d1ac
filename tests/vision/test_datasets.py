"""Pictures from files that are here, in the formats of their makers and in folders; a missing file says so."""

import gzip
import io
import os
import pickle
import struct
import tarfile
from pathlib import Path

import numpy as np
import pytest

import dy2st as paddle
from dy2st.errors import FileFormatError
from dy2st.files import unpacked
from dy2st.vision import datasets

RNG = np.random.default_rng(2)


def idx(path, array):
    head = b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}i", *array.shape)
    path.write_bytes(gzip.compress(head + array.tobytes()) if path.suffix == ".gz" else head + array.tobytes())
    return str(path)


@pytest.mark.parametrize("kind", [datasets.MNIST, datasets.FashionMNIST])
def test_digits(tmp_path, kind):
    images, labels = RNG.integers(0, 256, (5, 28, 28), "uint8"), np.array([3, 1, 4, 1, 5], "uint8")
    paths = idx(tmp_path / "images.gz", images), idx(tmp_path / "labels", labels)
    data = kind(*paths, transform=lambda image: image / 255.0, backend="cv2")
    assert len(data) == 5
    image, label = data[2]
    np.testing.assert_array_equal(image, (images[2] / 255.0).astype("float32"))
    assert (label.dtype, label.tolist(), image.dtype) == ("int64", [4], "float32")
    batch = next(iter(paddle.io.DataLoader(data, batch_size=5)))
    assert batch[0].shape == [5, 28, 28]
    with pytest.raises(ValueError, match="no file of bytes in the IDX format"):
        kind(*([str((tmp_path / "bad").write_text("text") and tmp_path / "bad")] * 2))
    with pytest.raises(ValueError, match="mode is 'train' or 'test'"):
        kind(*paths, mode="valid")
    with pytest.raises(ValueError, match="the backend of a dataset"):
        kind(*paths, backend="tensor")


@pytest.mark.parametrize(("kind", "key"), [(datasets.Cifar10, b"labels"), (datasets.Cifar100, b"fine_labels")])
def test_small_pictures(tmp_path, kind, key):
    pictures, path = RNG.integers(0, 256, (4, 3072), "uint8"), tmp_path / "cifar.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("data_batch_1", "test_batch") if kind is datasets.Cifar10 else ("train", "test"):
            content = pickle.dumps({b"data": pictures, key: [7, 8, 9, 1]}, protocol=2)
            member = tarfile.TarInfo(f"cifar/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    data = kind(str(path), mode="test", backend="cv2")
    assert (len(data), int(data[1][1])) == (4, 8)
    np.testing.assert_array_equal(data[1][0], pictures[1].reshape(3, 32, 32).transpose(1, 2, 0).astype("float32"))


def test_an_archive_that_would_run_something_is_refused(tmp_path):
    class Bad:
        def __reduce__(self):
            return print, ("run",)

    content = pickle.dumps(Bad())
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        member = tarfile.TarInfo("data_batch_1")
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    with pytest.raises(FileFormatError, match=r"names 'builtins\.print"):
        datasets.Cifar10(str(tmp_path / "bad.tar"))


def archive_of(path, content, name="cifar/data_batch_1"):
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        archive.addfile(member, io.BytesIO(content))
    return str(path)


def test_digits_that_are_damaged(tmp_path, monkeypatch):
    images, labels = np.zeros((5, 28, 28), "uint8"), np.zeros(5, "uint8")
    good = idx(tmp_path / "i.gz", images), idx(tmp_path / "l", labels)
    whole, bad = Path(good[0]).read_bytes(), tmp_path / "bad.gz"

    def refused(message, *paths):
        with pytest.raises(FileFormatError, match=message) as caught:
            datasets.MNIST(*map(str, paths), backend="cv2")
        assert len(str(caught.value)) < 800
        assert "\n" not in str(caught.value)

    bad.write_bytes(whole[:-20])
    refused("bad.gz: the file is damaged or cut short", bad, good[1])
    bad.write_bytes(whole[:12] + b"\xff" * 8 + whole[20:])
    refused("bad.gz: the file is damaged or cut short", bad, good[1])
    refused("no file of bytes in the IDX format with 1 axes", *good[:1] * 2)
    refused("has 5 pictures, and .* 4 labels", good[0], idx(tmp_path / "four", labels[:4]))
    for shape in ((5, 28, 29), (2**31, 2**31, 4), (2**32 - 1, 28, 28)):
        bad.write_bytes(b"\0\0\x08\x03" + struct.pack(">3I", *shape) + images.tobytes())
        refused(r"says it has the shape \[.*\], and holds 3920 bytes", bad, good[1])
    os.mkfifo(tmp_path / "pipe")
    refused("it is a pipe or a device", tmp_path / "pipe", good[1])
    monkeypatch.setattr(unpacked, "MOST_IN_MEMORY", 3000)
    refused("holds more than the 3,000 bytes", *good)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"data": np.zeros((4, 3072), "uint8")}, "no list of 4 numbers under 'labels'"),
        ({"data": np.zeros((4, 3072), "uint8"), "labels": [1, 2, 3]}, "no list of 4 numbers under 'labels'"),
        ({b"data": np.zeros((4, 3072), "uint8"), b"labels": [1, 2, 3, "4"]}, "no list of 4 numbers under 'labels'"),
        ({"data": np.zeros((4, 3071), "uint8"), "labels": [1] * 4}, "no pictures of 32 x 32"),
        ({"data": np.zeros((4, 3072), "float32"), "labels": [1] * 4}, "no pictures of 32 x 32"),
        ([1], "no pictures of 32 x 32"),
        (np.zeros(3, "O"), "the pickle|an array"),
    ],
)
def test_small_pictures_that_are_none(tmp_path, content, message):
    with pytest.raises(FileFormatError, match=message):
        datasets.Cifar10(archive_of(tmp_path / "c.tgz", pickle.dumps(content, protocol=2)))


def test_archives_that_are_damaged(tmp_path, monkeypatch):
    content = pickle.dumps({"data": np.zeros((4, 3072), "uint8"), "labels": [1] * 4}, protocol=2)
    path = Path(archive_of(tmp_path / "c.tgz", content))
    whole = path.read_bytes()
    for data in (b"", whole[:60], whole[:30] + b"\xff" * 9 + whole[39:], b"text"):
        path.write_bytes(data)
        with pytest.raises(FileFormatError, match=r"c\.tgz: the file is damaged or cut short") as caught:
            datasets.Cifar10(str(path))
        assert "\n" not in str(caught.value)
    path.write_bytes(whole)
    for limit in ("MOST_BYTES", "MOST_MEMBERS", "MOST_IN_MEMORY"):
        with monkeypatch.context() as patch:
            patch.setattr(unpacked, limit, 0)
            with pytest.raises(FileFormatError, match=r"holds more than the|has more than the 0 bytes"):
                datasets.Cifar10(str(path))
    with pytest.raises(FileFormatError, match=r"there is no file VOCdevkit/VOC2012/ImageSets/.*trainval.txt in it"):
        datasets.VOC2012(str(path))


def test_folders_of_classes(tmp_path):
    for name in ("dog/a.png", "cat/b.jpg", "cat/sub/c.png", "cat/notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(name.encode())
    load = lambda path: Path(path).read_bytes()
    data = datasets.DatasetFolder(str(tmp_path), load, transform=len)
    assert (data.classes, data.targets, len(data)) == (["cat", "dog"], [0, 0, 1], 3)
    assert data[2] == (len("dog/a.png"), 1)
    assert len(datasets.DatasetFolder(str(tmp_path), load, is_valid_file=lambda path: path.endswith("txt"))) == 1
    flat = datasets.ImageFolder(str(tmp_path), load)
    assert (len(flat), flat[0]) == (3, [b"cat/b.jpg"])
    with pytest.raises(RuntimeError, match="no file below"):
        datasets.ImageFolder(str(tmp_path), extensions=[".gif"])
    with pytest.raises(RuntimeError, match="has a file that is taken"):
        datasets.DatasetFolder(str(tmp_path), extensions=[".gif"])
    with pytest.raises(ValueError, match="not both"):
        datasets.ImageFolder(str(tmp_path), extensions=[".gif"], is_valid_file=len)


@pytest.mark.parametrize("name", ["MNIST", "FashionMNIST", "Cifar10", "Cifar100", "Flowers", "VOC2012"])
def test_what_is_not_here_says_where_to_put_it(name, monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "DATA_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=rf"{name}: nothing is downloaded here; get .* put it at {tmp_path}"):
        getattr(paddle.vision, name)()
    with pytest.raises(ValueError, match="mode is"):
        getattr(datasets, name)(mode="other")


def test_image_backends():
    assert paddle.vision.get_image_backend() == "pil"
    paddle.vision.set_image_backend("cv2")
    assert paddle.vision.image.get_image_backend() == "cv2"
    paddle.vision.set_image_backend("pil")
    with pytest.raises(ValueError, match="an image backend is one of"):
        paddle.vision.image_load("a.png", backend="other")
    assert paddle.vision.Compose is paddle.vision.transforms.Compose
    assert paddle.vision.resnet18 is paddle.vision.models.resnet18


def test_tables_of_flowers(tmp_path):
    sio = pytest.importorskip("scipy.io")
    sio.savemat(tmp_path / "t.mat", {"labels": np.arange(5), "half": np.ones(2), "none": np.zeros((0, 0), "int64")})
    assert datasets._row(tmp_path / "t.mat", "labels").tolist() == [0, 1, 2, 3, 4]
    for name in ("half", "none", "other"):
        with pytest.raises(FileFormatError, match=f"no row of whole numbers '{name}'"):
            datasets._row(tmp_path / "t.mat", name)
    (tmp_path / "t.mat").write_bytes((tmp_path / "t.mat").read_bytes()[:150])
    with pytest.raises(FileFormatError, match="no MATLAB file that can be read"):
        datasets._row(tmp_path / "t.mat", "labels")
