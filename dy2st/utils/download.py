"""`paddle.utils.download`: files that are on this machine already; nothing is fetched from a network."""

from __future__ import annotations

import hashlib
import logging
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

logger = logging.getLogger(__name__)
WEIGHTS_HOME = str(Path("~/.cache/paddle/hapi/weights").expanduser())


def is_url(path: str) -> bool:
    """Return whether a path is an address of the network.

    >>> is_url("https://example.org/a.pdparams"), is_url("a.pdparams")
    (True, False)
    """
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """Return the path of parameters under their address's last name, where they lie in `WEIGHTS_HOME` already."""
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def get_path_from_url(
    url: str, root_dir: str, md5sum: str | None = None, check_exist: bool = True, decompress: bool = True,
    method: str = "get",
) -> str:  # fmt: skip
    """Return the path below `root_dir` of the file with the last name of an address.

    Raises RuntimeError, which names the place, where the file is not there, or is not the one that `md5sum` tells:
    nothing is downloaded. Archives are left as they are: unpack them yourself.
    """
    target = Path(root_dir) / url.rpartition("/")[2]
    if not target.exists():
        raise RuntimeError(f"{url}: nothing is downloaded here; get the file yourself and put it at {target}")
    if md5sum and (found := md5file(target)) != md5sum:
        raise RuntimeError(f"{target} is not the file that was asked for: its MD5 sum is {found}, not {md5sum}")
    return str(target)


def md5file(fname: str | Path) -> str:
    """Return the MD5 sum of a file in hexadecimal digits: it tells files apart, it protects nothing."""
    with open(fname, "rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()


def _md5check(fullname: str, md5sum: str | None = None) -> bool:  # pyright: ignore[reportUnusedFunction] imported
    """Return whether a file has this MD5 sum; any file has where none is given."""
    return md5sum is None or md5file(fullname) == md5sum


def _decompress(fname: str) -> str:  # pyright: ignore[reportUnusedFunction] projects import it
    """Unpack a tar or zip archive beside itself, and return the path of what was unpacked.

    That is the one file or folder that all members are in; where there is none, a folder with the archive's name is
    made for them. Members that would lie outside are refused. TypeError for a file that is no archive.
    """
    if tarfile.is_tarfile(fname):
        with tarfile.open(fname) as tar:
            folder, unpacked = _place(fname, tar.getnames())
            tar.extractall(folder, filter="data")
    elif zipfile.is_zipfile(fname):
        with zipfile.ZipFile(fname) as archive:
            folder, unpacked = _place(fname, archive.namelist())
            archive.extractall(folder)
    else:
        raise TypeError(f"{fname} is neither a tar nor a zip archive")
    return str(unpacked)


def _place(archive: str, members: list[str]) -> tuple[Path, Path]:
    """Return the folder that members are unpacked into, and the path of them all."""
    tops = {Path(name).parts[0] for name in members if Path(name).parts}
    beside = Path(archive).parent
    if len(tops) == 1:
        return beside, beside / tops.pop()
    own = beside / Path(archive).stem
    own.mkdir(exist_ok=True)
    return own, own


def _get_unique_endpoints(trainer_endpoints: Iterable[str]) -> set[str]:  # pyright: ignore[reportUnusedFunction] imported
    """Return one endpoint ("host:port") of each host, the first in order.

    >>> _get_unique_endpoints(["10.0.0.1:71", "10.0.0.1:70"])
    {'10.0.0.1:70'}
    """
    of_host: dict[str, str] = {}
    for endpoint in sorted(trainer_endpoints):
        of_host.setdefault(endpoint.partition(":")[0], endpoint)
    return set(of_host.values())
