"""Tables in npy files: what numpy writes is read, and whatever is damaged is one clear error."""

from __future__ import annotations

import io
import re

import numpy as np
import pytest

from mipmech import InputError, Instance
from mipmech.model.npy import read_npy
from tests.conftest import seeds

TYPES = ["<f8", ">f8", "<f4", ">f4", "<f2", "|i1", "<i2", ">i4", "<i8", "|u1", "<u4", ">u8"]


def saved(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def with_header(text, data=bytes(48)):
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode("latin-1") + data


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize("version", [(1, 0), (2, 0)])
def test_what_numpy_writes_is_read(tmp_path, kind, order, version):
    array = np.asarray(np.arange(12).reshape(4, 3), dtype=kind, order=order)
    (tmp_path / "a.npy").write_bytes(saved(array, version))
    found = read_npy(tmp_path / "a.npy", "agents")
    assert found.dtype == array.dtype
    assert np.array_equal(found, array)


def test_headers_that_others_write(tmp_path):
    file = tmp_path / "a.npy"
    for text in (
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3)}",
        "{'shape':(2,3,),'descr':'<f8','fortran_order':False}\n",
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2L, 3L), }          \n",
    ):
        file.write_bytes(with_header(text))
        assert read_npy(file, "agents").shape == (2, 3)


PLAIN = "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }"
# What is wrong: what stands in the plain header, what is put there, and what is said.
DAMAGED = {
    "unclosed": ("}", "", "damaged header"),
    "unclosed text": ("'<f8'", "'<f8", "damaged"),
    "no type": ("'descr': '<f8',", "", "damaged"),
    "type twice": ("'fortran", "'descr': '<f8', 'fortran", "damaged"),
    "another name": ("descr", "DESCR", "damaged"),
    "one more": ("'shape'", "'x': (1,), 'shape'", "damaged"),
    "records": ("'<f8'", "[('a', '<f8')]", "damaged"),
    "long doubles": ("<f8", "<f16", "values of type '<f16'"),
    "no type at all": ("<f8", "", "values of type ''"),
    "times": ("<f8", "<M8[s]", "values of type"),
    "an order of three": ("<f8", "<<>f8", "values of type"),
    "objects": ("<f8", "|O", "pickled Python objects"),
    "shape a number": ("(2, 3)", "(6)", "has 1 dimensions"),
    "shape of nothing": ("(2, 3)", "()", "has 0 dimensions"),
    "shape with a hole": ("(2, 3)", "(2,, 3)", "damaged shape"),
    "shape of text": ("(2, 3)", "(a, b)", "damaged shape"),
    "shape in hexadecimal": ("(2, 3)", "(0x2, 3)", "damaged shape"),
    "shape of other digits": ("(2, 3)", "(²,3)", "damaged shape"),
    "shape with an indent": ("(2, 3)", "(2\n  ,\n 3", "damaged"),
    "negative": ("(2, 3)", "(-2, -3)", "negative sizes"),
    "no agents": ("(2, 3)", "(0, 3)", "is empty"),
    "no agents of any width": ("(2, 3)", "(0, 999999999999999999)", "is empty"),
    "too large for any file": ("(2, 3)", "(999999999999999999, 999999999999999999)", "cut off"),
    "too large for an integer": ("(2, 3)", "(2, 9999999999999999999999)", "damaged shape"),
    "more than is there": ("(2, 3)", "(3, 3)", "cut off: its header promises 72 bytes"),
    "less than is there": ("(2, 3)", "(2, 2)", "has 48 bytes of data, its header promises 32"),
    "a truth of its own": ("False", "None", "damaged"),
    "a program": ("(2, 3)", "(__import__('os').getpid(), 3)", "damaged"),
    "a long run of digits": ("(2, 3)", f"({'1' * 9000}", "damaged"),
    "a long run of blanks": ("(2, 3)", f"({' ' * 9000}", "damaged"),
    "too long": ("}", f"}}{' ' * 20_000}", "too long"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_damaged_headers_are_named(tmp_path, what):
    was, put, said = DAMAGED[what]
    (tmp_path / "a.npy").write_bytes(with_header(PLAIN.replace(was, put)))
    with pytest.raises(InputError, match=said) as caught:
        read_npy(tmp_path / "a.npy", "agents")
    assert caught.value.field == "agents"
    assert caught.value.file == str(tmp_path / "a.npy")


def instance_of(tmp_path, data):
    (tmp_path / "a.npy").write_bytes(data)
    file = tmp_path / "a.json"
    file.write_text(
        '{"format": "mipmech/instance@1", "name": "a", "agents": {"npy": "a.npy"},'
        ' "quality": [1, 1, 1], "visible": [0], "cost": 1}'
    )
    return Instance.load(file)


SYMBOLS = b" \n\t\0'\"()[]{}:,.<>|=-+*\\#0123456789LTFNfiucbOUSVMmdex\xff"


def mutated(data, rng):
    """The file with a few bytes of its header replaced, put in or left out; at times, any byte."""
    end = len(data) if rng.random() < 0.1 else data.index(b"\n") + 1
    for _ in range(rng.integers(1, 5)):
        place = int(rng.integers(end))
        symbol = bytes([SYMBOLS[rng.integers(len(SYMBOLS))]])
        data = data[:place] + (b"", symbol)[rng.random() < 0.8] + data[place + rng.integers(2) :]
    return data


@pytest.mark.parametrize("block", seeds(3, 50))
def test_mutated_files_are_read_or_refused(tmp_path, block):
    """A hundred of each block; warnings are errors."""
    rng = np.random.default_rng(block)
    for _ in range(100):
        kind, order = TYPES[rng.integers(len(TYPES))], "CF"[rng.integers(2)]
        array = np.asarray(rng.integers(0, 9, (4, 3)), dtype=kind, order=order)
        data = mutated(saved(array, ((1, 0), (2, 0))[rng.integers(2)]), rng)
        fault = None
        try:
            instance_of(tmp_path, data)
        except InputError as error:
            fault = error
        assert fault is None or re.search(r"a\.(npy|json): (agents|quality)", str(fault)), data


@pytest.mark.parametrize("kind", ["<f2", ">f4", "<f4", "<f8", ">f8"])
def test_numbers_that_signal_are_refused_without_a_warning(tmp_path, kind):
    """Converting or comparing a signalling NaN sets a flag that numpy warns of."""
    array = np.ones((2, 3), kind)
    bits = {2: 0x7D00, 4: 0x7FA00000, 8: 0x7FF4000000000000}[array.itemsize]
    array.view(f"{kind[0]}u{kind[2]}")[1, 2] = bits
    with pytest.raises(InputError, match=r"row 1: column 2 is not a number \(NaN\)"):
        instance_of(tmp_path, saved(array))
