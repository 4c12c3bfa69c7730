"""Plans: checked as a whole before anything runs, and the same jobs with the same ids for ever."""

from __future__ import annotations

import json
import os
import tomllib

import pytest

from mipmech import InputError, make_instance
from mipmech.studies.batch import Plan, expand, jobs
from tests.batches import HEAD, SMALL, TWO_HUNDRED, write_plan

INSTANCES = '[[instances]]\nfamily = "ties"\nagents = 12\n'
TASKS = '[[tasks]]\ntask = "certify"\n'
ORACLE = '[[tasks]]\ntask = "oracle"\neta = 0.5\n'


def plan_of(tmp_path, text):
    return Plan.load(write_plan(tmp_path, text))


FAULTS = {
    "not TOML": ("format = ", None, "is not TOML"),
    "no format": ("name = 'x'", "format", 'is missing; this program reads format = "mipmech/plan'),
    "other format": ("format = 'mipmech/plan@2'", "format", "is 'mipmech/plan@2'"),
    "no instances": (HEAD + TASKS, "instances", r"give one \[\[instances\]\] or more"),
    "no tasks": (HEAD + INSTANCES, "tasks", r"give one \[\[tasks\]\] or more"),
    "one bracket": (HEAD + "[instances]\nfamily = 'ties'\n" + TASKS, "instances", "two brackets"),
    "unknown table": (HEAD + "task = 1\n" + INSTANCES + TASKS, "task", "did you mean 'tasks'"),
    "unknown field": (
        HEAD + INSTANCES + "sed = 1\n" + TASKS, "instances[1].sed", "did you mean 'seed'",
    ),
    "family": (
        HEAD + "[[instances]]\nfamily = 'tie'\nagents = 3\n" + TASKS, "instances[1].family",
        "did you mean 'ties'",
    ),
    "no agents": (
        HEAD + "[[instances]]\nfamily = 'ties'\n" + TASKS, "instances[1].agents", "is missing",
    ),
    "files and family": (
        HEAD + INSTANCES + "files = ['a']\n" + TASKS, "instances[1]", "either files or a family",
    ),
    "neither": (HEAD + "[[instances]]\nagents = 3\n" + TASKS, "instances[1]", "either files or"),
    "no such file": (
        HEAD + "[[instances]]\nfiles = ['no*.json']\n" + TASKS, "instances[1].files",
        "'no.*' matches no file",
    ),
    "agents": (
        HEAD + "[[instances]]\nfamily = 'ties'\nagents = 0\n" + TASKS, "instances[1].agents",
        "give 1 or more",
    ),
    "fractional seed": (
        HEAD + INSTANCES + "seed = 1.5\n" + TASKS, "instances[1].seed", "give a whole number",
    ),
    "boolean seed": (
        HEAD + INSTANCES + "seed = true\n" + TASKS, "instances[1].seed", "give a whole number",
    ),
    "empty list": (HEAD + INSTANCES + "seed = []\n" + TASKS, "instances[1].seed", "is empty"),
    "twice": (HEAD + INSTANCES + "seed = [1, 1]\n" + TASKS, "instances[1].seed", "value twice"),
    "empty range": (
        HEAD + INSTANCES + "seed = {from = 3, to = 2}\n" + TASKS, "instances[1].seed",
        "nothing between",
    ),
    "half a range": (
        HEAD + INSTANCES + "seed = {from = 3}\n" + TASKS, "instances[1].seed", "without its ends",
    ),
    "huge range": (
        HEAD + INSTANCES + "seed = {from = 0, to = 9_999_999}\n" + TASKS, "instances[1].seed",
        "give at most 1,000,000",
    ),
    "norm": (
        HEAD + INSTANCES + "norm = 'l3'\n" + TASKS, "instances[1].norm", "give one of l2, l1, linf",
    ),
    "effort": (
        HEAD + INSTANCES + "effort = 'spred'\n" + TASKS, "instances[1].effort",
        'give a list of prices, or "spread"',
    ),
    "a price": (
        HEAD + INSTANCES + "effort = [1.0, 0.0]\n" + TASKS, "instances[1].effort", "above 0",
    ),
    "no task": (HEAD + INSTANCES + "[[tasks]]\ngap = 0.1\n", "tasks[1].task", "is missing"),
    "unknown task": (
        HEAD + INSTANCES + "[[tasks]]\ntask = 'certifi'\n", "tasks[1].task",
        "did you mean 'certify'",
    ),
    "no eta": (HEAD + INSTANCES + "[[tasks]]\ntask = 'oracle'\n", "tasks[1].eta", "is missing"),
    "eta fraction": (
        HEAD + INSTANCES + "[[tasks]]\ntask = 'oracle'\neta_fraction = 1.1\n",
        "tasks[1].eta_fraction", "from -1 to 1",
    ),
    "second task": (
        HEAD + INSTANCES + TASKS + "[[tasks]]\ntask = 'certify'\ngap = 2\n", "tasks[2].gap",
        "from 0 to 0.999",
    ),
    "oracle": (HEAD + INSTANCES + ORACLE + "oracle = 'mlip'\n", "tasks[1].oracle", "'milp'"),
    "option": (
        HEAD + INSTANCES + ORACLE + "options = {norms = 'box'}\n", "tasks[1].options.norms",
        "does not take this option.*did you mean 'norm'",
    ),
    "another option": (
        HEAD + INSTANCES + ORACLE + "options = {name = 1}\n", "tasks[1].options.name",
        "does not take this option",
    ),
    "a seed among the options": (
        HEAD + INSTANCES + ORACLE + "oracle = 'random'\noptions = {seed = 1}\n",
        "tasks[1].options.seed", "give it as seed",
    ),
    "option's value": (
        HEAD + INSTANCES + ORACLE + "options = {norm = 'sphere'}\n", "tasks[1].options.norm",
        "give cones or",
    ),
    "option's type": (
        HEAD + INSTANCES + ORACLE + "options = {segments = 'many'}\n", "tasks[1].options.segments",
        "give a whole number",
    ),
    "option's number": (
        HEAD + INSTANCES + ORACLE + "options = {segments = nan}\n", "tasks[1].options.segments",
        "give a whole number",
    ),
    "rounds": (
        HEAD + INSTANCES + ORACLE + "oracle = 'random'\noptions = {rounds = 1.5}\n",
        "tasks[1].options.rounds", "give a whole number",
    ),
    "a date for a solver": (
        HEAD + INSTANCES + ORACLE + "options = {solver = 1979-05-27}\n", "tasks[1].options.solver",
        "expected text",
    ),
    "no tables": ("instances = [1]\n" + HEAD + TASKS, "instances[1]", "give a table"),
    "only folders": (
        HEAD + "[[instances]]\nfiles = 'sub*'\n" + TASKS, "instances[1].files", "matches no file",
    ),
    "deep": ("format = " + "[" * 50_000, None, "nested too deeply|is not TOML"),
    "a long number": (f"format = {'9' * 5000}", None, "is not TOML"),
    "a huge seed": (
        HEAD + INSTANCES + "seed = 10000000000000000000000\n" + TASKS, "instances[1].seed",
        "give at most",
    ),
    "no end of repetitions": (
        HEAD + INSTANCES + TASKS + "repetitions = 10000000000000\n", "tasks[1].repetitions",
        "give at most",
    ),
    "too many combinations": (
        HEAD + INSTANCES + "seed = {from = 1, to = 9999}\nrank = {from = 2, to = 999}\n" + TASKS,
        "instances[1]", "combinations; give fewer",
    ),
    "memory beyond all": (
        HEAD + f"[limits]\nmemory = '{'9' * 400} GB'\n" + INSTANCES + TASKS, "limits.memory",
        "2 GB",
    ),
    "much memory": (
        HEAD + "[limits]\nmemory = 9000000000000000000\n" + INSTANCES + TASKS, "limits.memory",
        "give at most",
    ),
    "seconds": (
        HEAD + INSTANCES + TASKS + "seconds = 0\n", "tasks[1].seconds", "a number above 0",
    ),
    "limits": (
        HEAD + "[limits]\nsecond = 3\n" + INSTANCES + TASKS, "limits.second",
        "did you mean 'seconds'",
    ),
    "memory": (
        HEAD + "[limits]\nmemory = '2 bananas'\n" + INSTANCES + TASKS, "limits.memory", "2 GB",
    ),
    "little memory": (
        HEAD + "[limits]\nmemory = '2 MB'\n" + INSTANCES + TASKS, "limits.memory",
        "a worker alone needs",
    ),
    "no oracles": (
        HEAD + INSTANCES + "[[tasks]]\ntask = 'compare'\n", "tasks[1].oracles", "is missing",
    ),
    "a family without such a member": (
        HEAD + "[[instances]]\nfamily = 'needle'\nagents = 9\nrank = 1\n" + TASKS, "instances",
        "give 2 or more",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", FAULTS)
def test_faults_are_named(tmp_path, what):
    text, field, message = FAULTS[what]
    (tmp_path / "subfolder").mkdir()
    with pytest.raises(InputError, match=message) as caught:
        expand(plan_of(tmp_path, text))
    assert caught.value.field == field
    assert caught.value.file == str(tmp_path / "plan.toml")


def test_a_plan_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="cannot be read: no such file"):
        Plan.load(tmp_path / "none.toml")


def test_too_many_jobs(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs, "MOST_JOBS", 199)
    with pytest.raises(InputError, match="200 jobs; at most 199 are allowed"):
        expand(plan_of(tmp_path, TWO_HUNDRED))


def test_too_many_numbers_to_make(tmp_path, monkeypatch):
    """A line of a plan makes a million instances, or huge ones."""
    text = HEAD + "[[instances]]\nfamily = 'ties'\nagents = [10, 20]\nseed = [1, 2]\n" + TASKS
    monkeypatch.setattr(jobs, "MOST_MADE", 180)
    assert len(expand(plan_of(tmp_path, text)).subjects) == 4
    monkeypatch.setattr(jobs, "MOST_MADE", 179)
    with pytest.raises(InputError, match=r"makes 180 numbers .* at most 179 are allowed"):
        expand(plan_of(tmp_path, text))


def test_a_plan_is_read_in_the_time_allowed(tmp_path, monkeypatch):
    """A clock that ends after so many looks: no instance is made after it."""
    monkeypatch.setattr("mipmech.studies.batch.jobs.ANYHOW", 0)
    plan, made = plan_of(tmp_path, TWO_HUNDRED), []

    class Ending:
        looks = 8

        @property
        def left(self):
            self.looks -= 1
            return float(self.looks > 0)

    with pytest.raises(InputError, match=f"7 of {len(plan.sources)} instances were read or made"):
        expand(plan, made.append, timer=Ending())
    assert len(made) == 7


def test_the_same_plan_gives_the_same_jobs(tmp_path):
    one = expand(plan_of(tmp_path, SMALL))
    (tmp_path / "elsewhere").mkdir()
    other = expand(plan_of(tmp_path / "elsewhere", SMALL))
    assert one.jobs == other.jobs
    assert len({job.id for job in one.jobs}) == len(one.jobs) == 6


def test_an_id_hangs_on_what_the_result_hangs_on(tmp_path, monkeypatch):
    def ids(text):
        return [job.id for job in expand(plan_of(tmp_path, text)).jobs]

    base = HEAD + INSTANCES + TASKS
    known = ids(base)
    same = [
        base.replace("a test", "another name"),
        base + "memory = '4 GB'\ngrace = 3\n",
        base + "engine = 'auto'\nkeep = true\ngap = 1e-3\n",
        base.replace("agents = 12", "agents = 12\nseed = 0\nrank = 2"),
    ]
    assert all(ids(text) == known for text in same)
    others = [
        base.replace("12", "13"),
        base + "gap = 0.01\n",
        base + "seconds = 61\n",
        base + "engine = 'milp'\n",
    ]
    assert all(set(ids(text)).isdisjoint(known) for text in others)
    assert ids(base + "repetitions = 3\n")[0] == known[0]
    assert len(set(ids(base + "repetitions = 3\n"))) == 3
    monkeypatch.setattr(jobs, "_version", lambda _: "99")
    assert set(ids(base)).isdisjoint(known)


def test_saying_what_is_so_anyway_changes_no_id(tmp_path):
    def ids(text):
        return [job.id for job in expand(plan_of(tmp_path, HEAD + INSTANCES + ORACLE + text)).jobs]

    assert ids("") == ids("options = {segments = 8, norm = 'cones'}\n") == ids("oracle = 'milp'\n")
    zero = [ids(f"eta_fraction = {zero}\n") for zero in ("0.0", "-0.0", "0")]
    assert zero[0] == zero[1] == zero[2]


def test_names_that_glob_would_take_for_patterns(tmp_path):
    folder = tmp_path / "a[1]"
    folder.mkdir()
    make_instance("ties", 12, 2, 0).save(folder / "b[2].json")
    for pattern in ("b[2].json", "*.json", "."):
        text = HEAD + f"[[instances]]\nfiles = '{pattern}'\n" + TASKS
        assert len(plan_of(folder, text).sources) == 1


def test_a_broken_file_with_a_name_that_is_no_text(tmp_path):
    (tmp_path / os.fsdecode(b"b\xff.json")).write_text("{}")
    make_instance("ties", 12, 2, 0).save(tmp_path / "a.json")
    found = expand(plan_of(tmp_path, HEAD + "[[instances]]\nfiles = '*.json'\n" + TASKS))
    assert len(found.broken) == 1
    json.dumps(found.to_dict(), ensure_ascii=False).encode()


def test_a_solvers_version_matters_only_where_it_is_asked():
    matter = jobs.versions_that_matter
    assert set(matter({"oracle": "cells"})) == {"mipmech"}
    assert set(matter({"engine": "auto"})) == {"mipmech"}
    solved = {"mipmech", "highspy", "pyomo"}
    assert set(matter({"oracle": "milp"})) == solved
    assert set(matter({"engine": "milp"})) == solved
    assert set(matter({"oracle": "cells", "skip": "milp"})) == solved


def test_ranges_and_lists_are_swept(tmp_path):
    text = HEAD + (
        "[[instances]]\nfamily = ['ties', 'uniform-ball']\nagents = {from = 10, to = 30, step = 10}"
        "\nrank = [2, 3]\nseed = {from = 0, to = 1}\n" + ORACLE + "oracle = ['sweep', 'random']\n"
        "seed = [0, 1, 2]\n"
    )
    plan = plan_of(tmp_path, text)
    assert len(plan.sources) == 2 * 3 * 2 * 2
    # An oracle that draws nothing is asked once, whatever the seeds.
    assert [piece.options["oracle"] for piece in plan.pieces] == ["sweep", *["random"] * 3]
    assert len(expand(plan).jobs) == 24 * 4


def test_files_are_relative_to_the_plan_and_each_counts_once(tmp_path):
    folder = tmp_path / "deep" / "er"
    folder.mkdir(parents=True)
    sample = make_instance("ties", 12, 2, 0)
    for name in ("a.json", "b.json", "deep/er/c.json"):
        sample.save(tmp_path / name)
    make_instance("ties", 13, 2, 0).save(tmp_path / "deep" / "d.json")
    text = HEAD + "[[instances]]\nfiles = ['*.json', '**/*.json', 'deep']\n" + TASKS
    found = expand(plan_of(tmp_path, text))
    assert sorted(subject.agents for subject in found.subjects) == [12, 13]


def test_a_comparison_becomes_its_questions(tmp_path):
    task = (
        "[[tasks]]\ntask = 'compare'\noracles = ['cells', 'random']\neta_fractions = [0.9, 0.5]\n"
    )
    found = expand(plan_of(tmp_path, HEAD + INSTANCES + task + "seeds = [0, 1]\nseconds = 2\n"))
    kinds = [job.kind for job in found.jobs]
    assert kinds == ["reference"] * 3 + ["ask cells", "ask random", "ask random"]
    assert [job.limit for job in found.jobs] == [10.0] * 3 + [4.0] * 3
    more = expand(plan_of(tmp_path, HEAD + INSTANCES + task + "seeds = [0, 1, 2]\nseconds = 2\n"))
    assert {job.id for job in found.jobs} < {job.id for job in more.jobs}


def test_limits_of_a_task_come_before_those_of_the_plan(tmp_path):
    limits = "[limits]\nseconds = 5\ngrace = 1\nmemory = '1 GiB'\nrepetitions = 2\n"
    text = HEAD + limits + INSTANCES + TASKS + ORACLE + "seconds = 7\nrepetitions = 1\n"
    plan = plan_of(tmp_path, text)
    assert [(p.task, p.seconds, p.grace, p.memory, p.repetition) for p in plan.pieces] == [
        ("certify", 5.0, 1.0, 2**30, 0), ("certify", 5.0, 1.0, 2**30, 1),
        ("oracle", 7.0, 1.0, 2**30, 0),
    ]  # fmt: skip


def test_the_record_of_a_plan_is_json(tmp_path):
    found = expand(plan_of(tmp_path, SMALL))
    content = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert content["text"] == SMALL
    assert [job["id"] for job in content["jobs"]] == [job.id for job in found.jobs]


def test_labels_say_what_a_job_is(tmp_path):
    text = HEAD + INSTANCES + ORACLE + "oracle = 'random'\nseed = 3\nrepetitions = 2\n"
    expansion = expand(plan_of(tmp_path, text))
    labels = [expansion.label(job) for job in expansion.jobs]
    assert labels == [
        "oracle random at η = 0.5 seed 3 on ties-m12-k2-s0",
        "oracle random at η = 0.5 seed 3 again (2) on ties-m12-k2-s0",
    ]


@pytest.mark.parametrize("depth", [51, 30_000])
@pytest.mark.parametrize("key", ["{}", "[{}]", "[[{}]]", "a = {{ {} = 1 }}", '"{}" . b', "# {}"])
def test_deep_keys_are_refused_before_they_are_read(tmp_path, monkeypatch, depth, key):
    """tomllib takes time that grows with the square of the depth: half a minute for 64 kB."""
    monkeypatch.setattr(tomllib, "loads", lambda _: pytest.fail("was read"))
    text = key.format(".".join("a" * (depth + 1)))
    with pytest.raises(InputError, match=r"more than 50 points on line \d"):
        plan_of(tmp_path, f"{HEAD}\n{text}\n")


def test_a_key_of_numbers_is_a_deep_one_and_a_list_of_numbers_is_none(tmp_path):
    with pytest.raises(InputError, match=r"more than 50 points"):
        plan_of(tmp_path, HEAD + " . ".join(["1.1"] * 60) + " = 1\n")
    etas = ", ".join(f"{j / 1000}" for j in range(1, 301))
    task = f'[[tasks]]\ntask = "oracle"\neta = [{etas}, 1.5e-9]\n'
    assert len(plan_of(tmp_path, HEAD + INSTANCES + task).pieces) == 301


def test_a_plan_of_more_than_64_kb_is_refused(tmp_path):
    text = HEAD + INSTANCES + TASKS
    assert plan_of(tmp_path, text + "#" * (64_000 - len(text)))
    with pytest.raises(InputError, match="has 64,001 bytes; of such files, at most 64,000 are"):
        plan_of(tmp_path, text + "#" * (64_001 - len(text)))


@pytest.mark.parametrize("value", [f"0x{'f' * 50_000}", "[0x" + "1" * 50_000 + "]", "1e999", "inf"])
@pytest.mark.parametrize("field", ["agents", "seed", "cost", "family", "files"])
def test_numbers_beyond_all_in_a_plan(tmp_path, value, field):
    text = f"{HEAD}[[instances]]\n{field} = {value}\n" + TASKS
    with pytest.raises(InputError) as caught:
        plan_of(tmp_path, text)
    assert len(str(caught.value)) < 400


def test_families_with_other_costs(tmp_path):
    text = HEAD + INSTANCES + "norm = ['l1', 'linf', 'l2']\neffort = 'spread'\n"
    text += INSTANCES + "norm = 'l1'\neffort = [1, 2.5]\n" + TASKS
    samples = [source.load() for source in plan_of(tmp_path, text).sources]
    names = ["ties-m12-k2-s0-l1-priced", "ties-m12-k2-s0-linf-priced", "ties-m12-k2-s0-priced"]
    assert [sample.name for sample in samples] == [*names, "ties-m12-k2-s0-l1-prices"]
    assert [sample.costs.norm for sample in samples] == ["l1", "linf", "l2", "l1"]
    assert samples[-1].costs.effort.tolist() == [1.0, 2.5, 1.0]
    assert len(expand(plan_of(tmp_path, text)).jobs) == 4


def test_solve_in_a_plan_takes_the_grid_that_fits(tmp_path):
    text = HEAD + INSTANCES + '[[tasks]]\ntask = "solve"\n'
    (piece,) = plan_of(tmp_path, text).pieces
    assert piece.options["grid"] == "auto"
