"""`paddle.utils.download`: files that are on this machine already; nothing is fetched from a network."""

from __future__ import annotations

import hashlib
from pathlib import Path

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
    if md5sum and (found := hashlib.md5(target.read_bytes(), usedforsecurity=False).hexdigest()) != md5sum:
        raise RuntimeError(f"{target} is not the file that was asked for: its MD5 sum is {found}, not {md5sum}")
    return str(target)
