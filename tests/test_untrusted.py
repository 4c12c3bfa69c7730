"""Reading strangers' files: nothing is waited for, nothing endless is read, no JSON has traps."""

from __future__ import annotations

import os
import re
import socket

import pytest

from mipmech import untrusted
from mipmech.errors import InputError


def test_a_plain_file_and_a_link_to_one(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfabc")
    (tmp_path / "link").symlink_to("a")
    assert untrusted.read_bytes(tmp_path / "link", 6) == b"\xef\xbb\xbfabc"
    assert untrusted.read_text(tmp_path / "a", 6) == "abc"


def test_a_limit_is_named_and_nothing_is_read_beyond(tmp_path):
    with (tmp_path / "a").open("wb") as stream:
        stream.truncate(10**12)  # takes no room on the disk
    with pytest.raises(InputError, match="1,000,000,000,000 bytes; of such files, at most 64,000"):
        untrusted.read_bytes(tmp_path / "a", 64_000)


def test_only_plain_files_are_opened(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    os.symlink("pipe", "link")
    os.symlink("/dev/zero", "zero")
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("was opened"))
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
        for name in ("pipe", "link", "zero", "socket", "/dev/tty"):
            with pytest.raises(InputError, match=f"^{name}: .*not a plain file"):
                untrusted.read_bytes(untrusted.Path(name), 100)
    with pytest.raises(InputError, match="is a folder"):
        untrusted.read_bytes(tmp_path, 100)


def test_a_pipe_that_takes_a_files_place_is_not_waited_for(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("{}")
    look = os.stat

    def replaced(path):
        found = look(path)
        os.unlink(path)
        os.mkfifo(path)
        return found

    monkeypatch.setattr(os, "stat", replaced)
    with pytest.raises(InputError, match="not a plain file"):
        untrusted.read_bytes(tmp_path / "a", 100)


def test_names_that_no_file_can_have(tmp_path):
    for name in ("a\0b", "\ud800", "x" * 5000):
        with pytest.raises(OSError, match=r"no file has such a name|File name too long"):
            untrusted.read_bytes(tmp_path / name, 100)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "b": 2, "a": 3}', "a: appears twice"),
        ('[{"a": {"b": 1, "b": 1}}]', "b: appears twice"),
        ('{"a": NaN}', "has 'NaN' where"),
        ('{"a": [-Infinity]}', "has '-Infinity' where"),
        ('{"a": 1e999}', "has '1e999' where"),
        (f'{{"a": {"9" * 400}}}', "has '999"),
        (f'{{"a": {"9" * 40_000}}}', "has '999"),
        ("[" * 100_000, "nested too deeply"),
        ("{", "is not JSON: .* at line 1, column 2"),
    ],
)
def test_json_without_traps(tmp_path, text, said):
    with pytest.raises(InputError, match=said) as caught:
        untrusted.json_value(text)
    assert len(str(caught.value)) < 200
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=f"a.json: .*{said}"):
        untrusted.json_object(tmp_path / "a.json", 10**6)


def test_where_fields_are_named_numbers_are_left_to_them():
    assert untrusted.json_value(f"[1e999, {'9' * 40_000}]", finite=False) == [float("inf")] * 2
    assert untrusted.json_value(f"[{2**63 - 1}, 1e3]", finite=False) == [2**63 - 1, 1000.0]
    with pytest.raises(InputError, match="twice"):
        untrusted.json_value('{"a": 1, "a": 1}', finite=False)


def test_every_reader_goes_through_here(root):
    """No other module opens a file by a name that it was given."""
    opening = re.compile(r"\.read_(text|bytes)\(|(?<!untrusted)\.open\(\"rb?\"|[^.\w]open\(")
    found = {
        str(path.relative_to(root / "mipmech"))
        for path in (root / "mipmech").rglob("*.py")
        for line in path.read_text().splitlines()
        if opening.search(line.replace("untrusted.read_", ""))
        and "def open(" not in line
        and "os.devnull" not in line
    }
    # Its own files, and those of the system; certificates are read by the checker itself.
    assert found == {"report/kit/page.py", "workers/child.py", "workers/processes.py"}
