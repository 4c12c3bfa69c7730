"""Malformed files: each gives exit status 2 and one clear message, never a traceback."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from mipmech.cli import main

GOOD = {
    "format": "mipmech/instance@1",
    "name": "good",
    "agents": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.5]],
    "features": ["a", "b"],
    "quality": [1.0, 1.0],
    "visible": ["a"],
    "cost": 2.0,
}
DROP = object()


def changed(**fields):
    content = {**GOOD, **fields}
    return json.dumps({k: v for k, v in content.items() if v is not DROP})


def seen(**fields):
    return changed(visible=DROP, **fields)


def messy(**fields):
    """A CSV file with text in it, of which two columns are features."""
    return changed(agents={"csv": "messy.csv"}, features=["gpa", "sat"], visible=["sat"], **fields)


# name -> (text of the file, what the message must say)
FAULTS = {
    "format missing": (changed(format=DROP), "format: is missing"),
    "format of another kind": (changed(format="mipmech/instance@2"), "this program reads"),
    "format is a number": (changed(format=1), "format: is 1"),
    "name missing": (changed(name=DROP), "name: is missing"),
    "name is a number": (changed(name=3), "name: is 3; expected text"),
    "name is empty": (changed(name=" "), "name: is empty;"),
    "name is huge": (changed(name="x" * 10_000), "name: has 10000 characters"),
    "name with an escape sequence": (changed(name="\x1b[31mred"), "cannot be printed"),
    "name with broken Unicode": (changed(name="\ud800"), "cannot be printed"),
    "agents missing": (changed(agents=DROP), "agents: is missing"),
    "agents empty": (changed(agents=[]), "agents: is a list of 0"),
    "agents are text": (changed(agents="many"), "agents: is the text 'many'"),
    "agents a number": (changed(agents=7), "agents: is 7"),
    "agents null": (changed(agents=None), "agents: is null"),
    "agent is a number": (changed(agents=[[1, 2], 3]), "agents, row 1: is 3"),
    "agents without features": (changed(agents=[[], []], features=DROP), "has no features"),
    "agent too short": (changed(agents=[[1, 2], [3]]), "agents, row 1: has 1 numbers, row 0 has 2"),
    "agent with text": (changed(agents=[[1, 2], [3, "4"]]), "agents, row 1: has the text '4'"),
    "agent with a boolean": (changed(agents=[[1, 2], [True, 4]]), "agents, row 1: has true"),
    "agent with null": (changed(agents=[[1, None]]), "agents, row 0: has null"),
    "agent nested": (changed(agents=[[1, [2]]]), "agents, row 0: has a list of 1"),
    "agent NaN": (changed(agents=[[1, 2], [float("nan"), 2]]), "agents, row 1: column 0 is not a num"),
    "agent infinite": (changed(agents=[[1, float("inf")]]), "agents, row 0: column 1 is infinite"),
    "agent overflowing": (
        changed(agents=[[1, 2]]).replace("[[1, 2]]", "[[1, 1e999]]"),
        "agents, row 0: column 1 is infinite",
    ),
    "agent a huge integer": (
        changed(agents=[[1, 2]]).replace("[[1, 2]]", "[[1, " + "9" * 5000 + "]]"),
        "agents, row 0: column 1 is infinite",
    ),
    "agent huge": (changed(agents=[[1, 1e200]]), "beyond 1e+100 in size; choose other units"),
    "agents by two files": (changed(agents={"csv": "a", "npy": "b"}), "agents: is an object"),
    "agents by an unknown kind": (changed(agents={"xls": "a"}), "agents: is an object"),
    "agents' file is a number": (changed(agents={"csv": 3}), "'csv' is 3; give a file's name"),
    "agents' file does not exist": (changed(agents={"csv": "no.csv"}), "there is no file 'no.csv'"),
    "agents' file outside by ..": (changed(agents={"csv": "../out.csv"}), "leads outside"),
    "agents' file absolute": (changed(agents={"csv": "/etc/hostname"}), "leads outside"),
    "agents' file by a link": (changed(agents={"csv": "link.csv"}), "leads outside"),
    "agents' file by a linked folder": (changed(agents={"csv": "linked/out.csv"}), "leads outside"),
    "agents' file is a folder": (changed(agents={"csv": "folder"}), "is not a plain file"),
    "agents' file is a pipe": (changed(agents={"csv": "pipe"}), "is not a plain file"),
    "agents' file with a zero byte": (changed(agents={"csv": "a\0b"}), "cannot open"),
    "agents' file with a very long name": (changed(agents={"csv": "x" * 5000}), "cannot open"),
    "CSV empty": (changed(agents={"csv": "empty.csv"}), "start with a header line"),
    "CSV without agents": (changed(agents={"csv": "header.csv"}), "has a header but no agents"),
    "CSV without header": (changed(agents={"csv": "bare.csv"}), "starts with numbers"),
    "CSV with a short line": (changed(agents={"csv": "short.csv"}), "agents, line 3: has 1 cells"),
    "CSV with a long line": (changed(agents={"csv": "long.csv"}), "agents, line 2: has 3 cells"),
    "CSV with a word": (changed(agents={"csv": "word.csv"}), "agents, line 3: has 'abc' under 'b'; expected a plain number"),
    "CSV with a gap": (changed(agents={"csv": "gap.csv"}), "agents, line 2: has no number under 'b'"),
    "CSV with a blank line": (changed(agents={"csv": "blank.csv"}), "agents, line 3: is a blank line"),
    "CSV with NaN": (changed(agents={"csv": "nan.csv"}), "agents, line 2: column 1 is not a number"),
    "CSV with 1_000": (changed(agents={"csv": "underscore.csv"}), "agents, line 2: has '1_000' under 'b'; expected a plain number; write 1000"),
    "CSV with other digits": (changed(agents={"csv": "digits.csv"}), "agents, line 2: 'b' holds text, such as '١٢'"),
    "CSV with 1_000 and old line ends": (changed(agents={"csv": "old.csv"}), "agents, line 2: has '1_000' under 'b'; expected a plain number; write 1000"),
    "CSV with semicolons": (changed(agents={"csv": "semi.csv"}), "is separated by semicolons"),
    "CSV with tabs": (changed(agents={"csv": "tabs.csv"}), "is separated by tabs"),
    "CSV with an index": (changed(agents={"csv": "index.csv"}, features=DROP), "write it with index=False"),
    "CSV with a nameless column": (changed(agents={"csv": "anon.csv"}, features=DROP), "without a name; name it"),
    "CSV broken quote": (changed(agents={"csv": "quote.csv"}), "is not CSV"),
    "CSV in Latin-1": (changed(agents={"csv": "latin.csv"}), "is not UTF-8"),
    "CSV header twice": (changed(agents={"csv": "twice.csv"}, features=DROP), "has 'a' twice"),
    "CSV without a feature": (changed(agents={"csv": "good.csv"}, features=["a", "c"]), "features: there is no column 'c'; there are a, b"),
    "CSV with a feature misspelt": (changed(agents={"csv": "messy.csv"}, features=["GPA"]), "(did you mean 'gpa'?)"),
    "CSV with a feature twice": (changed(agents={"csv": "messy.csv"}, features=["gpa", "gpa"]), "features, row 1: has 'gpa' twice"),
    "CSV with a text as feature": (changed(agents={"csv": "messy.csv"}, features=["gpa", "id"]), "agents, line 2: 'id' holds text, such as 'Zoë_1'; expected plain numbers"),
    "CSV with two features of one name": (changed(agents={"csv": "twice.csv"}, features=["a"], quality=[1]), "there are 2 such columns"),
    "CSV with text and no selection": (changed(agents={"csv": "messy.csv"}, features=DROP), "list those that are in 'features'"),
    "quality by names without names": (changed(quality={"a": 1}, features=DROP, visible=[0]), "quality: names features, but the instance has no 'features'"),
    "quality of an unknown feature": (changed(quality={"A": 1}), "(did you mean 'a'?)"),
    "quality by name not a number": (changed(quality={"a": "1"}), "quality: has the text '1' for 'a'; expected a number"),
    "quality by name a boolean": (changed(quality={"a": True}), "quality: has true for 'a'"),
    "quality by name infinite": (changed(quality={"a": float("inf")}), "quality: is infinite"),
    "quality by name all zero": (changed(quality={"a": 0}), "quality: is zero"),
    "quality an empty object": (changed(quality={}), "quality: is zero"),
    "cost a column without CSV": (changed(cost={"column": "c"}), "cost: names the column 'c', but the agents are in no CSV file"),
    "cost an unknown column": (messy(cost={"column": "costs"}), "cost: there is no column 'costs'"),
    "cost a column of text": (messy(cost={"column": "id"}), "cost, line 2: 'id' holds text, such as 'Zoë_1'"),
    "cost a column with zero": (messy(cost={"column": "none"}), "cost, line 3: is 0; it must be above 0"),
    "cost an object of another kind": (messy(cost={"col": "c"}), 'cost: is an object; one that names a column is written {"column": "name"}'),
    "cost a column by number": (messy(cost={"column": 3}), "cost: is an object; one that names"),
    "weights an unknown column": (messy(weights={"column": "w"}), "weights: there is no column 'w'"),
    "weights a column of npy": (changed(agents={"npy": "ones.npy"}, weights={"column": "w"}), "weights: names the column 'w', but the agents are in no CSV file"),
    "ids too few": (changed(ids=["x", "y"]), "ids: has 2 names, 3 expected: one per agent"),
    "ids with a boolean": (changed(ids=["x", True, "z"]), "ids, row 1: is true; expected text or a whole number"),
    "ids with a list": (changed(ids=["x", "y", ["z"]]), "ids, row 2: is a list of 1"),
    "ids mistyped": (changed(ids="x,y,z"), "ids: is the text 'x,y,z'; give a list"),
    "ids an unknown column": (messy(ids={"column": "name"}), "ids: there is no column 'name'"),
    "ids a column without CSV": (changed(ids={"column": "id"}), "ids: names the column 'id'"),
    "groups a list": (changed(groups=["x", "y", "z"]), 'groups: is a list of 3; give labels by name, as in {"sex"'),
    "groups null": (changed(groups=None), "groups: is null; leave it out, or give it"),
    "groups empty": (changed(groups={}), "groups: is empty; give labels by name"),
    "groups without a name": (changed(groups={"": ["x", "y", "z"]}), "groups: has a name that is empty"),
    "groups with a long name": (changed(groups={"s" * 201: ["x", "y", "z"]}), "groups: has a name that has 201 characters"),
    "groups too few": (changed(groups={"sex": ["x", "y"]}), "groups: 'sex' has 2 labels, 3 expected: one per agent"),
    "groups of one text": (changed(groups={"sex": "xyz"}), "groups: 'sex' is the text 'xyz'; give a list of labels"),
    "groups null for all": (changed(groups={"sex": None}), "groups: 'sex' is null; give a list of labels"),
    "groups with null": (changed(groups={"sex": ["x", "y", None]}), "groups, row 2: a label of 'sex' is null; expected text or a whole number"),
    "groups with a float": (changed(groups={"sex": [1, 1.0, 2]}), "groups, row 1: a label of 'sex' is 1.0; expected text or a whole number"),
    "groups with a boolean": (changed(groups={"sex": [True, "y", "z"]}), "groups, row 0: a label of 'sex' is true; expected text or a whole number"),
    "groups with an empty label": (changed(groups={"sex": ["x", "", "z"]}), "groups, row 1: a label of 'sex' is empty"),
    "groups an unknown column": (messy(groups={"sex": {"column": "sex"}}), "groups: there is no column 'sex'"),
    "groups a column without CSV": (changed(groups={"sex": {"column": "id"}}), "groups: names the column 'id'"),
    "groups an object of another kind": (messy(groups={"sex": {"col": "id"}}), 'groups: is an object; one that names a column is written {"column": "name"}'),
    "units incomplete": (changed(units={"scale": [1, 1]}), 'units: is an object; give {"centre"'),
    "units mistyped": (changed(units=[1, 1]), "units: is a list of 2"),
    "units too few": (changed(units={"centre": [0], "scale": [1, 1]}), "units.centre: has 1 numbers, 2 expected"),
    "units of scale 0": (changed(units={"centre": [0, 0], "scale": [1, 0]}), "units.scale, row 1: is 0; it must be above 0"),
    "units of tiny scale": (changed(units={"centre": [0, 0], "scale": [1, 1e-200]}), "units.scale, row 1: is 1e-200; it must be at least"),
    "units with NaN": (changed(units={"centre": [0, 0], "scale": [1, float("nan")]}), "units.scale, row 1: is not a number"),
    "units with text": (changed(units={"centre": ["0", 0], "scale": [1, 1]}), "units.centre, row 0: is the text '0'"),
    "npy is text": (changed(agents={"npy": "good.csv"}), "is not an npy file"),
    "npy pickled": (changed(agents={"npy": "pickled.npy"}), "pickled Python objects"),
    "npy a bare pickle": (changed(agents={"npy": "bare.npy"}), "is not an npy file"),
    "npy of booleans": (changed(agents={"npy": "bool.npy"}), "values of type bool"),
    "npy complex": (changed(agents={"npy": "complex.npy"}), "values of type complex128"),
    "npy one-dimensional": (changed(agents={"npy": "line.npy"}), "has 1 dimensions"),
    "npy cut off": (changed(agents={"npy": "cut.npy"}), "is cut off"),
    "npy that promises terabytes": (changed(agents={"npy": "bomb.npy"}), "is cut off"),
    "npy of a negative shape": (changed(agents={"npy": "negative.npy"}), "negative sizes"),
    "npy of huge integers": (changed(agents={"npy": "ints.npy"}), "beyond 2^53"),
    "npy with NaN": (changed(agents={"npy": "nan.npy"}), "row 0: column 1 is not a number"),
    "features too few": (changed(features=["a"]), "features: has 1 names, 2 expected"),
    "features twice": (changed(features=["a", "a"]), "features, row 1: has 'a' twice"),
    "features mistyped": (changed(features="a,b"), "features: is the text 'a,b'"),
    "feature is a number": (changed(features=["a", 2]), "features, row 1: is 2"),
    "feature with blanks": (changed(features=["a", "b "]), "features, row 1: has spaces around"),
    "feature is empty": (changed(features=["a", ""]), "features, row 1: is empty"),
    "quality missing": (changed(quality=DROP), "quality: is missing"),
    "quality a number": (changed(quality=1), "quality: is 1; expected a list"),
    "quality too long": (changed(quality=[1, 2, 3]), "quality: has 3 numbers, 2 expected"),
    "quality zero": (changed(quality=[0, 0]), "quality: is zero"),
    "quality nearly zero": (changed(quality=[1, 5e-324]), "quality, row 1: has 4.94066e-324, nearer"),
    "quality NaN": (changed(quality=[1, float("nan")]), "quality, row 1: is not a number"),
    "quality boolean": (changed(quality=[1, True]), "quality, row 1: is true"),
    "offset mistyped": (changed(quality_offset="0"), "quality_offset: is the text '0'"),
    "offset infinite": (changed(quality_offset=float("-inf")), "quality_offset: is infinite"),
    "nothing says what is seen": (changed(visible=DROP), "exactly one of visible, projection, view"),
    "seen twice over": (changed(view=[[1, 0]]), "found visible and view"),
    "visible empty": (changed(visible=[]), "visible: is empty"),
    "visible unknown": (changed(visible=["z"]), "visible: names 'z', which is not among"),
    "visible beyond": (changed(visible=[2]), "visible: has column number 2; columns are numbered 0"),
    "visible negative": (changed(visible=[-1]), "visible: has column number -1"),
    "visible twice": (changed(visible=["a", 0]), "visible: has column 0 twice"),
    "visible boolean": (changed(visible=[True]), "visible: has True"),
    "visible null": (changed(visible=None), "visible: is null"),
    "visible a name": (changed(visible="a"), "visible: is the text 'a'"),
    "visible named without names": (changed(features=DROP), "visible: names 'a', but the file has no"),
    "visible a fraction": (changed(visible=[0.5]), "visible: has 0.5"),
    "view of zeros": (seen(view=[[0, 0]]), "view, row 0: is all zeros"),
    "view nearly zero": (seen(view=[[1, 1e-200]]), "view, row 0: has 1e-200, nearer to 0"),
    "view too narrow": (seen(view=[[1]]), "view: has rows of 1 numbers, 2 expected"),
    "view empty": (seen(view=[]), "view: is a list of 0"),
    "view nearly dependent": (seen(view=[[1, 2], [1, 2.0000000000000004]]), "up to rounding"),
    "projection not square": (seen(projection=[[1, 0]]), "projection: must be a square"),
    "projection oblique": (seen(projection=[[1, 1], [0, 0]]), "is an oblique projection"),
    "projection no projection": (seen(projection=[[2, 0], [0, 1]]), "is not a projection"),
    "projection of rank 0": (seen(projection=[[0, 0], [0, 0]]), "shows nothing"),
    "cost missing": (changed(cost=DROP), "cost: is missing"),
    "cost zero": (changed(cost=0), "cost: is 0; it must be above 0"),
    "cost negative": (changed(cost=[1, -2, 1]), "cost, row 1: is -2; it must be above 0"),
    "cost tiny": (changed(cost=1e-200), "cost: is 1e-200; it must be at least"),
    "cost text": (changed(cost="2"), "cost: is the text '2'"),
    "cost boolean": (changed(cost=True), "cost: is true"),
    "cost null": (changed(cost=None), "cost: is null"),
    "cost too few": (changed(cost=[1, 2]), "cost: has 2 numbers, 3 expected"),
    "cost NaN": (changed(cost=[1, 2, float("nan")]), "cost, row 2: is not a number"),
    "norm misspelt": (changed(norm="linff"), "norm: is the text 'linff'; give \"l2\", \"l1\" or \"linf\" (did you mean 'linf'?)"),
    "norm in capitals": (changed(norm="L1"), "(did you mean 'l1'?)"),
    "norm by another name": (changed(norm="Manhattan"), "(did you mean 'l1'?)"),
    "norm a number": (changed(norm=2), "norm: is 2; give \"l2\", \"l1\" or \"linf\" (did you mean 'l2'?)"),
    "norm null": (changed(norm=None), "norm: is null; leave it out"),
    "norm a list": (changed(norm=["l1"]), "norm: is a list of 1; give"),
    "norm l1 with a view": (seen(view=[[1, 1]], norm="l1"), "norm: is l1, which needs a planner who sees single features; give 'visible' instead"),
    "norm linf with a projection": (seen(projection=[[0.5, 0.5], [0.5, 0.5]], norm="linf"), "norm: is linf, which needs a planner who sees single features"),
    "reach beside cost": (changed(reach=0.5), "reach: is given beside 'cost', of which it is the inverse; leave out one of the two"),
    "reach zero": (changed(cost=DROP, reach=0), "reach: is 0; it must be above 0: it says how far an agent moves to pass"),
    "reach negative": (changed(cost=DROP, reach=[1, 1, -0.5]), "reach, row 2: is -0.5; it must be above 0"),
    "reach tiny": (changed(cost=DROP, reach=1e-200), "reach: is 1e-200; it must be at least 1e-100"),
    "reach huge": (changed(cost=DROP, reach=[1, 1, 1e200]), "reach, row 2: is 1e+200, beyond 1e+100 in size; choose other units"),
    "reach text": (changed(cost=DROP, reach="far"), "reach: is the text 'far'; expected a number"),
    "reach null": (changed(cost=DROP, reach=None), "reach: is null; leave it out"),
    "reach too few": (changed(cost=DROP, reach=[1, 2]), "reach: has 2 numbers, 3 expected: one for all agents, or one per agent"),
    "reach an unknown column": (messy(cost=DROP, reach={"column": "costs"}), "reach: there is no column 'costs'; there are id, gpa, sat, c, none"),
    "reach a column with zero": (messy(cost=DROP, reach={"column": "none"}), "reach, line 3: is 0; it must be above 0"),
    "reach a column without CSV": (changed(cost=DROP, reach={"column": "c"}), "reach: names the column 'c', but the agents are in no CSV file"),
    "reach misspelt": (changed(cost=DROP, reaches=1), "(did you mean 'reach'?)"),
    "effort a number": (changed(effort=2), "effort: is 2; give prices by feature, a list with one per feature, or a matrix; what is the same for all features belongs into 'cost'"),
    "effort text": (changed(effort="standard"), "effort: is the text 'standard'; give prices by feature"),
    "effort boolean": (changed(effort=True), "effort: is true; give prices by feature"),
    "effort null": (changed(effort=None), "effort: is null; leave it out"),
    "effort empty": (changed(effort=[]), "effort: has 0 numbers, 2 expected: one price per feature"),
    "effort too few": (changed(effort=[2]), "effort: has 1 numbers, 2 expected: one price per feature"),
    "effort ragged": (changed(effort=[[1, 0], [0]]), "effort, row 1: has 1 numbers, row 0 has 2; make all rows equally long"),
    "effort of numbers and rows": (changed(effort=[1, [0, 1]]), "effort, row 0: is 1; expected a list of numbers"),
    "effort nested too deeply": (changed(effort=[[[1]]]), "effort, row 0: has a list of 1; expected a number"),
    "effort of price 0": (changed(effort=[1, 0]), "effort, row 1: has the price 0 for 'b'; it must be above 0"),
    "effort of a negative price": (changed(effort={"a": -1}), "effort, row 0: has the price -1 for 'a'; it must be above 0"),
    "effort of a tiny price": (changed(effort=[1e-40, 1]), "has the price 1e-40 for 'a'; it must be above 0, from 1e-30 to 1e+30: choose other units"),
    "effort of a huge price": (changed(effort=[1, 1e50]), "has the price 1e+50 for 'b'; it must be above 0, from 1e-30 to 1e+30: choose other units"),
    "effort beyond all numbers": (changed(effort=[1, 1e200]), "effort, row 1: is 1e+200, beyond 1e+100 in size; choose other units"),
    "effort NaN": (changed(effort=[1, float("nan")]), "effort, row 1: has nan for 'b'; give finite numbers"),
    "effort infinite": (changed(effort=[[1, float("inf")], [0, 1]]), "effort, row 0: has inf for 'a' and 'b'; give finite numbers"),
    "effort with text": (changed(effort=[1, "2"]), "effort, row 1: is the text '2'; expected a number"),
    "effort with a boolean": (changed(effort=[1, True]), "effort, row 1: is true; expected a number"),
    "effort with null": (changed(effort=[1, None]), "effort, row 1: is null; expected a number"),
    "effort by name null": (changed(effort={"a": None}), "effort: has null for 'a'; expected a number"),
    "effort by name NaN": (changed(effort={"a": float("nan")}), "effort: is not a number (NaN); give a number"),
    "effort of an unknown feature": (changed(effort={"A": 2}), "effort: names 'A', which is not among the features 'a, b' (did you mean 'a'?)"),
    "effort by names without names": (changed(effort={"a": 2}, features=DROP, visible=[0]), "effort: names features, but the instance has no 'features'; add them, or list the numbers"),
    "effort a matrix not symmetric": (changed(effort=[[1, 0.5], [0.25, 1]]), "effort, row 0: is not symmetric: row 0 has 0.5 in column 1, but row 1 has 0.25 in column 0; give both the same"),
    "effort a matrix of the wrong size": (changed(effort=[[1, 0, 0], [0, 1, 0], [0, 0, 1]]), "effort: is 3 by 3; expected 2 by 2, a row and a column per feature"),
    "effort a matrix not square": (changed(effort=[[1, 0]]), "effort: is 1 by 2; expected 2 by 2"),
    "effort a matrix not definite": (changed(effort=[[1, 2], [2, 1]]), "effort: is not positive definite: some move would cost nothing, or less; give a matrix whose eigenvalues"),
    "effort a singular matrix": (changed(effort=[[1, 1], [1, 1]]), "effort: is not positive definite"),
    "effort a nearly singular matrix": (changed(effort=[[1, 0.9999999999999999], [0.9999999999999999, 1]]), "effort: is nearly singular: some move of 'a' and 'b' together costs almost nothing beside"),
    "effort a matrix with 0 on the diagonal": (changed(effort=[[1, 0], [0, 0]]), "effort, row 1: has 0 on its diagonal for 'b', which is the square of a price; it must be above 0"),
    "effort a matrix with l1": (changed(effort=[[1, 0.5], [0.5, 1]], norm="l1"), "effort: is a matrix, which goes with the norm l2 alone; give a list of prices, or leave out 'norm' (l1)"),
    "effort misspelt": (changed(efforts=[1, 2]), "(did you mean 'effort'?)"),
    "weights negative": (changed(weights=[1, -1, 1]), "weights, row 1: is -1"),
    "weights all zero": (changed(weights=[0, 0, 0]), "weights: are all 0"),
    "weights too many": (changed(weights=[1] * 4), "weights: has 4 numbers, 3 expected"),
    "weights null": (changed(weights=None), "weights: is null"),
    "smoothing incomplete": (changed(smoothing={"sigma": 1}), "smoothing: is an object; give"),
    "smoothing negative": (changed(smoothing={"sigma": -1, "radius": 1}), "smoothing.sigma: is -1"),
    "smoothing mistyped": (changed(smoothing=1), "smoothing: is 1"),
    "source mistyped": (changed(source=["x"]), "source: is a list of 1"),
    "known mistyped": (changed(known=[0, 1]), "known: is a list of 2"),
    "known reversed": (changed(known={"gain": [1, 0], "how": ""}), "known.gain: must be [lower, upper]"),
    "known without how": (changed(known={"gain": [0, 1]}), "known: is an object"),
    "unknown field": (changed(weight=[1, 1, 1]), "weight: is not a field of the format"),
    "misspelt field": (changed(qualty=[1]), "(did you mean 'quality'?)"),
    "misspelt feature": (changed(visible=["A"]), "(did you mean 'a'?)"),
    "field twice": (changed()[:-1] + ', "cost": 3}', "cost: appears twice"),
    "truncated": (changed()[:-20], "is not JSON"),
    "quality nearly zero beside a table": (messy(quality={"sat": 1e-200, "gpa": 1}), "quality, row 1: has 1e-200"),
    "weights null beside a table": (messy(weights=None), "weights: is null; leave it out"),
    "smoothing null": (changed(smoothing=None), "smoothing: is null; leave it out"),
    "offset NaN": (changed(quality_offset=float("nan")), "is not a number (NaN); give a number"),
    "empty file": ("", "is not JSON"),
    "a list": ("[1, 2]", "holds a list of 2; an instance file is one JSON object"),
    "nested 100,000 deep": ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
    "nested deep in a field": (changed(agents="@").replace('"@"', "[" * 900 + "]" * 900), "agents"),
}  # fmt: skip


@pytest.fixture
def folder(tmp_path):
    """A folder with broken tables in it, and a file outside it."""
    (tmp_path / "out.csv").write_text("a,b\n1,2\n")
    inside = tmp_path / "inside"
    (inside / "folder").mkdir(parents=True)
    (inside / "link.csv").symlink_to(tmp_path / "out.csv")
    (inside / "linked").symlink_to(tmp_path)
    os.mkfifo(inside / "pipe")
    tables = {
        "good": "a,b\n1,2\n", "empty": "", "header": "a,b\n", "bare": "1,2\n3,4\n",
        "short": "a,b\n1,2\n3\n", "long": "a,b\n1,2,3\n", "word": "a,b\n1,2\n3,abc\n",
        "gap": "a,b\n1,\n", "blank": "a,b\n1,2\n\n3,4\n", "nan": "a,b\n1,nan\n",
        "underscore": "a,b\n1,1_000\n", "digits": "a,b\n1,١٢\n", "quote": 'a,b\n"1,2\n',
        "twice": "a,a\n1,2\n", "old": "a,b\r1,1_000\r",
        "semi": "a;b\n1,5;2\n", "tabs": "a\tb\n1\t2\n", "index": ",a,b\n0,1,2\n1,3,4\n",
        "anon": ",a\n7,1\n",
        "messy": "id,gpa,sat,c,none\nZoë_1,3.5,700,2,1\nBo,2.5,600,3,0\n",
    }  # fmt: skip
    for name, text in tables.items():
        (inside / f"{name}.csv").write_text(text)
    (inside / "latin.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    np.save(inside / "pickled.npy", np.array([[object(), 1]]), allow_pickle=True)
    (inside / "bare.npy").write_bytes(pickle.dumps([[1, 2]]))
    np.save(inside / "bool.npy", np.ones((2, 2), bool))
    np.save(inside / "complex.npy", np.ones((2, 2), complex))
    np.save(inside / "line.npy", np.ones(2))
    np.save(inside / "ones.npy", np.ones((2, 2)))
    np.save(inside / "nan.npy", np.array([[1.0, np.nan]]))
    np.save(inside / "ints.npy", np.array([[2**60 + 1, 1]]))
    np.save(inside / "cut.npy", np.ones((100, 2)))
    whole = (inside / "cut.npy").read_bytes()
    (inside / "cut.npy").write_bytes(whole[:-8])
    bomb = whole.replace(b"(100, 2), }" + b" " * 12, b"(999999999999, 2), }" + b" " * 3)
    assert bomb != whole
    negative = whole.replace(b"(100, 2), }" + b" ", b"(-100, 2), }")
    assert negative != whole
    (inside / "negative.npy").write_bytes(negative)
    (inside / "bomb.npy").write_bytes(bomb)
    return inside


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_named_in_one_message(fault, folder, capsys):
    text, expected = FAULTS[fault]
    path = folder / "instance.json"
    path.write_text(text)
    assert main(["show", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert len(err) < 800
    assert expected in err
    assert str(folder) in err  # the file is named

    assert main(["show", str(path), "--json"]) == 2
    out, err = capsys.readouterr()
    assert err == ""
    assert set(json.loads(out)["error"]) == {"file", "field", "row", "message"}


def test_there_are_enough_faults():
    assert len(FAULTS) >= 100


def test_the_good_file_is_good(folder):
    path = folder / "instance.json"
    path.write_text(changed())
    assert main(["show", str(path), "--quiet"]) == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_ten_megabytes_of_noise(tmp_path, capsys, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path / "noise.json"
    noise = rng.integers(0, 256, 10_000_000, dtype=np.uint8)
    path.write_bytes(noise.tobytes() if seed else (noise % 90 + 32).tobytes())
    assert main(["show", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    for kind in ("csv", "npy"):
        (tmp_path / "i.json").write_text(changed(agents={kind: "noise.json"}))
        assert main(["show", str(tmp_path / "i.json")]) == 2
        err = capsys.readouterr().err
        assert err.count("\n") == 1
        assert len(err) < 800


@pytest.mark.parametrize("what", ["missing.json", "."])
def test_no_file_or_a_folder(tmp_path, capsys, what):
    assert main(["show", str(tmp_path / what)]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_errors_of_the_program_itself_never_show_a_traceback(tmp_path):
    """As a real process: exit status, streams, and no traceback."""
    (tmp_path / "a.json").write_text("{")
    for arguments in (
        ["show", "a.json"],
        ["show"],
        ["nonsense"],
        ["show", "a.json", "--seconds", "x"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "mipmech", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 2
        assert done.stdout == ""
        assert done.stderr.startswith("error: ")
        assert "Traceback" not in done.stderr
