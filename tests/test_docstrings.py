"""Docstrings of the public names: numpydoc sections that agree with the signatures."""

from __future__ import annotations

import inspect
from enum import Enum

import pytest
from numpydoc.docscrape import get_doc_object
from numpydoc.validate import Validator, validate

import mipmech

# Left out, with reasons. GL01, GL02, SS06, ES01, SA01 and EX01 are matters of layout and length:
# many statements need one line and no example. SS05 takes every noun in -s ("Values of …") for a
# verb. PR07 is held by ruff (D417) for functions; a field whose type says everything needs no more
# (``instance : Instance``). PR08 and RT04 ask for capitals, which a text that starts with η or ℓ
# cannot have. RT01 and RT03: signatures are annotated and checked by mypy, and summaries name what
# is returned, so a section on it is written where there is more to say.
HELD = {
    "GL03": "no double blank lines",
    "GL05": "no tabs",
    "GL06": "known sections only",
    "GL07": "sections in numpydoc's order",
    "GL08": "a docstring",
    "SS01": "a summary",
    "SS02": "a summary that starts with a capital",
    "SS03": "a summary that ends with a period",
    "SS04": "no blanks before the summary",
    "PR01": "every parameter documented",
    "PR02": "no other parameters",
    "PR03": "parameters in the order of the signature",
    "PR04": "a type for every parameter",
    "PR05": "no period after a type",
    "PR06": "int, bool and str, as Python has them",
    "PR09": "descriptions that end with a period",
    "PR10": "a blank before the colon",
    "RT02": "types in Returns, not names, unless there are several",
    "RT05": "their descriptions end with a period",
}


class Documented(Validator):
    """Fields of results that nobody constructs by hand are their attributes."""

    def __init__(self, obj_name):
        super().__init__(get_doc_object(Validator._load_obj(obj_name)))

    @property
    def signature_parameters(self):
        cls = self.obj if inspect.isclass(self.obj) else object
        if issubclass(cls, Enum) or getattr(cls, "_is_protocol", False):
            return ()
        return super().signature_parameters

    @property
    def doc_all_parameters(self):
        sections = ["Parameters", "Other Parameters"]
        if "Attributes" in self.section_titles and self.signature_parameters:
            sections.insert(1, "Attributes")
        return self._doc_parameters(sections)


def public():
    """The paths of functions, classes, and public methods that take arguments."""
    for package in (mipmech, mipmech.model, mipmech.theory):
        for name in package.__all__:
            value = getattr(package, name)
            if inspect.isfunction(value):
                yield f"{value.__module__}.{value.__qualname__}"
            elif inspect.isclass(value):
                path = f"{value.__module__}.{value.__qualname__}"
                yield path
                for method, found in vars(value).items():
                    function = getattr(found, "__func__", found)
                    takes = inspect.isfunction(function) and function.__code__.co_argcount > 1
                    if takes and not method.startswith("_"):
                        yield f"{path}.{method}"


def faults(name):
    return [fault for fault in validate(name, Documented)["errors"] if fault[0] in HELD]


@pytest.mark.parametrize("name", sorted(set(public())))
def test_docstrings_agree_with_signatures(name):
    assert faults(name) == []


def test_a_docstring_that_does_not_agree_is_found(monkeypatch):
    text = "reduce an instance\n\nParameters\n----------\nx : int\n    It."
    monkeypatch.setattr(mipmech.model.reduce, "__doc__", text)
    found = faults("mipmech.model.reduce")
    assert [code for code, _ in found] == ["SS02", "SS03", "PR01", "PR02"]
