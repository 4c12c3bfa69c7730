"""The journal: whatever is cut, damaged or refused, what was settled is there, whole and once."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mipmech.errors import InputError
from mipmech.studies.batch import journal
from mipmech.studies.batch.journal import Journal, JournalFault, line_of, record_in

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)  # fmt: skip
RECORDS = st.dictionaries(st.text().filter(lambda key: key != "check"), VALUES, min_size=1)


def settled_after_closing(writer):
    writer.close()
    return writer.settled()


def never_settles(writer):
    while True:
        assert writer.settled() == []


def whole(path):
    return [record["id"] for record in journal.read(path) if record is not None]


@given(RECORDS)
def test_a_record_is_one_line_and_reads_back(record):
    line = line_of(record)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    found = record_in(line)
    assert found.pop("check")
    assert found == record


@given(RECORDS, st.data())
def test_no_damaged_line_is_a_record(record, data):
    line = bytearray(line_of(record))
    place = data.draw(st.integers(0, len(line) - 2))
    line[place] ^= data.draw(st.integers(1, 255))
    if line[place] in b'\n' or record_in(bytes(line)) is None:  # fmt: skip
        return
    pytest.fail("a damaged line was taken for a record")


def test_not_a_number_is_refused_where_it_arises(tmp_path):
    writer = Journal(tmp_path / "j")
    with pytest.raises(ValueError, match="JSON"):
        writer.append("a", {"id": "a", "value": float("nan")})
    writer.append("b", {"id": "b"})
    assert settled_after_closing(writer) == ["b"]


def test_cut_anywhere_the_rest_goes_on(tmp_path):
    """Every length at which a kill could have left the file: whole records stay, the tail goes."""
    path = tmp_path / "j"
    lines = [line_of({"id": str(n), "text": "x" * n}) for n in range(4)]
    content = b"".join(lines)
    ends = [sum(map(len, lines[:n])) for n in range(5)]
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        before = whole(path)
        assert len(before) == sum(end <= size for end in ends[1:])
        writer = Journal(path, window=0.0)
        writer.append("new", {"id": "new"})
        assert settled_after_closing(writer) == ["new"]
        assert whole(path) == [*before, "new"]
        assert None not in list(journal.read(path))


def test_a_long_torn_end_is_cut_off(tmp_path):
    path = tmp_path / "j"
    path.write_bytes(line_of({"id": "a"}) + b"\0" * 300_000)
    Journal(path).close()
    assert path.read_bytes() == line_of({"id": "a"})
    path.write_bytes(b"x" * 300_000)
    Journal(path).close()
    assert path.read_bytes() == b""


def test_a_damaged_line_costs_only_itself(tmp_path):
    path = tmp_path / "j"
    path.write_bytes(line_of({"id": "a"}) + b"\0\0\0\n[]\n\n" + line_of({"id": "b"}))
    assert whole(path) == ["a", "b"]
    assert list(journal.read(path)).count(None) == 3


def test_no_file_has_no_records(tmp_path):
    assert list(journal.read(tmp_path / "none")) == []


def test_nothing_is_settled_before_it_is_on_the_disk(tmp_path, monkeypatch):
    """While the disk is busy, nothing counts; afterwards all of it does, in one group."""
    busy, asked = threading.Event(), threading.Event()
    calls = []
    real = os.fsync

    def slow(handle):
        calls.append(handle)
        asked.set()
        busy.wait(60)
        real(handle)

    writer = Journal(tmp_path / "j", window=0.0)
    monkeypatch.setattr(os, "fsync", slow)
    writer.append("a", {"id": "a"})
    assert asked.wait(60)
    for name in "bcd":
        writer.append(name, {"id": name})
    assert writer.settled() == []
    assert writer.pending == 4
    busy.set()
    assert settled_after_closing(writer) == list("abcd")
    assert len(calls) == 2


def test_files_reach_the_disk_before_the_record_that_names_them(tmp_path, monkeypatch):
    order = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (order.append(os.fstat(handle)), real(handle)))
    writer = Journal(tmp_path / "j")
    order.clear()
    (tmp_path / "deep").mkdir()
    writer.append("a", {"id": "a"}, {tmp_path / "deep" / "c.json": b"proof"})
    assert settled_after_closing(writer) == ["a"]
    assert (tmp_path / "deep" / "c.json").read_bytes() == b"proof"
    inodes = [entry.st_ino for entry in order]
    last = os.stat(tmp_path / "j").st_ino
    assert inodes[-1] == last
    assert os.stat(tmp_path / "deep" / "c.json").st_ino in inodes[:-1]
    assert os.stat(tmp_path / "deep").st_ino in inodes[:-1]


def test_a_disk_that_is_full_for_a_file_of_a_record(tmp_path):
    writer = Journal(tmp_path / "j")
    writer.append("a", {"id": "a"}, {Path("/dev/nowhere/c.json"): b"proof"})
    writer.close()
    with pytest.raises(JournalFault) as fault:
        writer.settled()
    assert fault.value.errno == errno.ENOENT
    assert str(fault.value).endswith("records cannot be written: no such file or directory")


def test_a_full_disk(tmp_path):
    """/dev/full says what a full disk says; what was settled before stays."""
    path = tmp_path / "j"
    writer = Journal(path, window=0.0)
    writer.append("a", {"id": "a"})
    while not (found := writer.settled()):
        pass
    assert found == ["a"]
    full = os.open("/dev/full", os.O_RDWR)
    kept = os.dup(writer._file)
    os.dup2(full, writer._file)
    writer.append("b", {"id": "b"})
    with pytest.raises(JournalFault) as caught:
        never_settles(writer)
    assert caught.value.errno == errno.ENOSPC
    assert "no space left" in str(caught.value)
    writer.close()
    for handle in (full, kept):
        os.close(handle)
    assert whole(path) == ["a"]


LIMITED = """
import resource, sys
from pathlib import Path
from mipmech.studies.batch.journal import Journal, JournalFault
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
writer = Journal(Path(sys.argv[1]), window=0.0)
settled = []
try:
    for n in range(1000):
        writer.append(str(n), {"id": str(n), "text": "x" * 999})
        while writer.pending:
            settled += writer.settled()
except JournalFault as fault:
    print(fault.errno, *settled)
"""


def test_a_file_that_may_not_grow(tmp_path):
    """The write that hits the limit is partial; its half line does not stay."""
    path = tmp_path / "j"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], capture_output=True, text=True, check=True
    )
    number, *settled = done.stdout.split()
    assert int(number) == errno.EFBIG
    assert len(settled) == 9
    assert whole(path) == settled
    assert path.read_bytes().endswith(b"\n")
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 10_000  # only there


def test_a_device_is_no_journal(tmp_path):
    (tmp_path / "j").symlink_to("/dev/full")
    with pytest.raises(InputError, match="not a plain file"):
        Journal(tmp_path / "j")
