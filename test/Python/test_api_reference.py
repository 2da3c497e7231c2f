"""Every public name of the package says what it does, in which shapes, and shows it: its example is run here."""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import sys
from pathlib import Path
from types import ModuleType

import genrec as gr
import numpy as np
import polars as pl
import pytest
from genrec import data, nn, plugins
from genrec.domain import make_batch
from genrec.recording import Recording, recording

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path) -> ModuleType:
    """The script at `path` as a module."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


api = load(ROOT / "scripts" / "api_reference.py")
PAGES = api.collect(api.load_package())
ENTRIES = {api.shown_name(entry): (page, entry) for page, entries in PAGES.items() for entry in entries}
ON_VALUES = re.compile(r"\b(Value|ValueLike|Domain|Items|Found|Ranks)\b")


class Names(dict):
    """Names of parameters that no model owns, which examples make where they use them."""

    def get(self, key, default=None):
        return self.setdefault(key, f"parameter_{len(self)}")


def docstring(thing) -> str:
    return thing.docstring.value if thing.docstring is not None else ""


def takes_values(thing) -> bool:
    """Whether a function has to do with values, so that its docstring must say their shapes."""
    if not thing.is_function:
        return False
    texts = [str(one.annotation) for one in thing.parameters] + [str(thing.returns)]
    return any(ON_VALUES.search(text) for text in texts)


def examples(thing) -> list[doctest.Example]:
    parsed = doctest.DocTestParser().get_examples(docstring(thing))
    for example in parsed:
        # Griffe says where the docstring begins, counting from 1.
        example.lineno += thing.docstring.lineno - 1
    return parsed


def parts(entry) -> list:
    """An entry and the public methods of a class."""
    return [entry.thing, *(api.methods_of(entry.thing) if entry.thing.is_class else [])]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that examples read."""
    path = tmp_path_factory.mktemp("examples")
    pl.DataFrame({"item": range(100), "price": np.linspace(1, 50, 100)}).write_parquet(path / "items.parquet")
    ratings = [f"{user},{item},{5 * user + item}" for user in range(20) for item in range(user % 4, 10)]
    (path / "ratings.csv").write_text("user,item,time\n" + "\n".join(ratings) + "\n")
    random = np.random.default_rng(1)
    for name in ("train", "valid"):
        rows = []
        for user in range(200):
            shown = random.integers(0, 100, 4)
            rows.append({"user": user, "impression": [{"item": int(i), "clicked": bool(i % 2)} for i in shown]})
        pl.DataFrame(rows).write_parquet(path / f"{name}.parquet")
    build = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
    shutil.copy(build / "lib" / "own_op.so", path)
    return path


@pytest.fixture(scope="module")
def compiled(folder):
    """The names that examples of running a model begin with: Ranker, model, run."""
    names: dict[str, object] = {"gr": gr, "nn": nn}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("GENREC_BIN", str(Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build")) / "bin"))
        # From a file, so that errors of the front end can show the source line.
        (folder / "ranker.py").write_text(api.EXAMPLE_MODEL)
        exec(compile(api.EXAMPLE_MODEL, str(folder / "ranker.py"), "exec"), names)
    return names


def run(parsed: list[doctest.Example], name: str, names: dict[str, object]) -> None:
    """Runs examples; a failure shows what was expected and what came."""
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    test = doctest.DocTest(parsed, names, name, None, 0, None)
    runner.run(test, out=out.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(out)


@pytest.mark.parametrize("name", [name for name, (_, entry) in ENTRIES.items() if any(map(examples, parts(entry)))])
def test_example(name, folder, monkeypatch, request):
    page, entry = ENTRIES[name]
    monkeypatch.chdir(folder)
    monkeypatch.setattr(plugins, "loaded", [])
    names: dict[str, object] = {"gr": gr, "nn": nn, "data": data, "np": np, "pl": pl}
    for thing in parts(entry):
        parsed = examples(thing)
        if not parsed:
            continue
        if page == "runs":
            monkeypatch.setenv("GENREC_BIN", str(Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build")) / "bin"))
            run(parsed, thing.path, names | request.getfixturevalue("compiled"))
            continue
        if page == "data":
            run(parsed, thing.path, dict(names))
            continue
        target = Recording("example", gr.optim.Adam())
        target.parameter_names = Names()
        with recording(target):
            batch = make_batch(target, eval(api.EXAMPLE_SCHEMA).root)
            run(parsed, thing.path, {**names, "batch": batch, "items": gr.catalogue("items.parquet", id="item")})


def lacks(name: str) -> list[str]:
    """What the docstrings of a public name, and of the methods of a class, do not say."""
    _, entry = ENTRIES[name]
    found = []
    shown = "".join(docstring(part) for part in parts(entry))
    for thing in parts(entry) if not entry.thing.is_class else [entry.thing, *public_methods(entry.thing)]:
        place = f"{thing.relative_filepath}:{thing.lineno}: {thing.path.removeprefix('genrec.')}"
        if not docstring(thing):
            found.append(f"{place} has no docstring")
            continue
        if takes_values(thing) and "\nShape:\n" not in docstring(thing):
            found.append(f"{place} takes or gives values, but has no section 'Shape:'")
        is_method = thing is not entry.thing
        if not (examples(thing) or (is_method and (thing.name == "forward" or is_called(thing, shown)))):
            found.append(f"{place} is shown by no example")
    return found


def public_methods(cls) -> list:
    """Methods and properties that a class defines under names of its own."""
    members = [one for one in cls.members.values() if not one.is_alias and not one.name.startswith("_")]
    return [one for one in members if one.is_function or "property" in one.labels]


def is_called(method, shown: str) -> bool:
    return re.search(rf">>> .*\.{method.name}\b|\.\.\. .*\.{method.name}\b", shown) is not None


HELP = """
Docstrings of public names are the reference (docs/api) and begin with a sentence that stands alone:

    \"\"\"What it does, for somebody who knows recommender systems but not genrec.

    Args:
        x: what the argument is, with its unit.

    Shape:
        [d] in, [] out.

    Example:
        >>> gr.new_function(batch.history.price)
        <float32, one per 'history'>
    \"\"\"

Shape is for functions of values alone, of one row. Examples run here: batch is of the schema in
scripts/api_reference.py, items a catalogue of items; on the page of runs, model and run are what EXAMPLE_MODEL there
makes. Then run scripts/docs."""


@pytest.mark.parametrize("name", ENTRIES)
def test_is_documented(name):
    assert not lacks(name), "\n".join([f"{name} lacks documentation:", *lacks(name), HELP])


def test_signatures_can_be_read():
    for page in (ROOT / "docs" / "api").glob("*.md"):
        for word in ("Union[", "ForwardRef", "typing.", "Optional["):
            assert word not in page.read_text(), f"{page.name} has a signature with {word}"


def test_a_lack_is_told(monkeypatch):
    """What is checked above, of a name that has nothing."""
    thing = ENTRIES["gr.clip"][1].thing
    monkeypatch.setattr(thing.docstring, "value", "The nearest number.")
    told = lacks("gr.clip")
    assert len(told) == 2
    assert "python/genrec/transforms.py" in told[0]
    assert "transforms.clip takes or gives values, but has no section 'Shape:'" in told[0]
    assert "transforms.clip is shown by no example" in told[1]
    monkeypatch.setattr(thing.docstring, "value", "")
    assert lacks("gr.clip")[0].endswith("transforms.clip has no docstring")
