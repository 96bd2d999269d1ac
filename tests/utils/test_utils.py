"""Files that lie here, modules that may be missing."""

import hashlib

import pytest

from dy2st.utils import download, run_check, try_import


def test_nothing_is_downloaded(tmp_path, monkeypatch):
    url = "https://example.org/models/a.pdparams"
    monkeypatch.setattr(download, "WEIGHTS_HOME", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"nothing is downloaded here; .* put it at .*a\.pdparams"):
        download.get_weights_path_from_url(url)
    (tmp_path / "a.pdparams").write_bytes(b"weights")
    assert download.get_weights_path_from_url(url) == str(tmp_path / "a.pdparams")
    right = hashlib.md5(b"weights", usedforsecurity=False).hexdigest()
    assert download.get_path_from_url(url, str(tmp_path), right) == str(tmp_path / "a.pdparams")
    with pytest.raises(RuntimeError, match="is not the file that was asked for: its MD5 sum is"):
        download.get_path_from_url(url, str(tmp_path), "0" * 32)
    assert download.is_url(url)


def test_a_missing_module_is_named():
    assert try_import("json").loads("1") == 1
    with pytest.raises(ImportError, match="no_such_module is needed here and is not installed: pip install"):
        try_import("no_such_module")
    with pytest.raises(ImportError, match=r"^get it$"):
        try_import("no_such_module", "get it")


def test_the_check_says_that_it_works(capsys):
    run_check()
    assert capsys.readouterr().out == "dy2st works on this machine.\n"
