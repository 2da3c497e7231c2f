"""Writes docs/api/: the reference of the Python package, from its docstrings.

Usage: build/venv/bin/python scripts/api_reference.py <folder>

A page each for the modules that PAGES lists. Signatures are as the source writes them. Docstrings have Google's
sections (Args, Returns, Raises, Example), and Shape for functions of values. `test/Python/test_api_reference.py` holds
every public name to that and runs every example.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import griffe

ROOT = Path(__file__).resolve().parent.parent

EXAMPLE_SCHEMA = """\
gr.Schema({
    "user": gr.int64, "age": gr.float32.nullable(), "country": gr.string, "time": gr.timestamp(),
    "held_out": gr.int64.nullable(),
    "history": [{"item": gr.int64, "time": gr.timestamp(), "next": gr.int64, "price": gr.float32, "tags": [gr.int64]}],
    "impression": [{"item": gr.int64, "clicked": gr.bool_, "seconds": gr.float32}],
})"""
"""The data of the examples: `batch` is a batch of it."""

EXAMPLE_MODEL = """\
class Ranker(gr.Model):
    def __init__(self):
        super().__init__(optimizer=gr.optim.Adam(1e-2))
        self.item = gr.Table("item", dim=16)
        self.score = nn.Linear(16, 1)

    def forward(self, batch):
        logit = self.score(self.item(batch.impression.item))
        gr.loss.bce_with_logits(logit, batch.impression.clicked)
        gr.metric.auc(logit, batch.impression.clicked)
        gr.output(probability=nn.sigmoid(logit))

model = gr.compile(Ranker(), gr.Schema.from_parquet("train.parquet"), output="ranker")
run = model.train("train.parquet", validation="valid.parquet", epochs=2, batch=64, seed=1, progress=False)"""
"""What examples of compiling and running begin with."""

PAGES = {
    "models": (
        "Models",
        [
            "model",
            "domain",
            "value",
            "operators",
            "table",
            "parameter",
            "nn.module",
            "catalogues",
            "outputs",
            "row_functions",
            "model_file",
            "plugins",
            "precision",
        ],
    ),
    "modules": ("Modules and functions of `nn`", ["nn.layers", "nn.attention", "nn.ranking", "nn.functional"]),
    "losses": ("Losses", ["loss"]),
    "metrics": ("Metrics and rankings", ["metric", "ranking"]),
    "transforms": ("Transforms and operations", ["transforms", "ops", "moves", "lists", "random"]),
    "optimizers": ("Optimizers and initial values", ["optim", "init"]),
    "data": ("Data", ["schema", "types", "data.reading", "data.ids", "data.histories", "data.writing"]),
    "runs": ("Compiling and running", ["compiler", "compiled", "run", "errors"]),
}
"""The modules of genrec whose public names a page shows, by the page's file."""

TYPES = (
    "value.ValueLike",
    "value.Number",
    "catalogues.Items",
    "nn.layers.Activation",
    "schema.Fields",
    "compiled.PathOrPaths",
)
"""Names that signatures use and the index explains."""


NOT_MADE = (
    "genrec.value.Value",
    "genrec.domain.Domain",
    "genrec.run.Run",
    "genrec.ranking.Found",
    "genrec.ranking.Ranks",
)
"""Classes whose objects users get, and do not make."""


PARTS = ("genrec.operators.Arithmetic", "genrec.operators.Operators")
"""Bases without a public name of their own: their methods are shown as those of the class that has them."""


@dataclass
class Entry:
    """A public object, and the names under which users reach it."""

    thing: griffe.Object
    names: list[str]


def load_package() -> griffe.Module:
    """The package as its source files have it; nothing of it is run."""
    import griffe

    module = griffe.load("genrec", search_paths=[str(ROOT / "python")], docstring_parser="google")
    assert isinstance(module, griffe.Module)
    return module


def public_names(package: griffe.Module) -> Iterator[tuple[str, griffe.Object]]:
    """Every public name as users write it, and what it is."""
    for name in package.exports or []:
        thing = package[str(name)]
        thing = thing.final_target if thing.is_alias else thing
        if thing.is_module:
            yield from members_of(thing, str(name))
        elif not str(name).startswith("_"):
            yield f"gr.{name}", thing
    yield from members_of(package["data"], "data")


def members_of(module: griffe.Module, name: str) -> Iterator[tuple[str, griffe.Object]]:
    """The public names of a module: those it exports, else the functions and classes that it defines."""
    prefix = name if name in ("nn", "data") else f"gr.{name}"
    if module.exports is not None:
        for one in module.exports:
            thing = module[str(one)]
            if thing.is_module:  # a function with the name of its file
                thing = thing[str(one)]
            yield f"{prefix}.{one}", thing.final_target if thing.is_alias else thing
        return
    for one, thing in module.members.items():
        if not thing.is_alias and not one.startswith("_") and (thing.is_function or thing.is_class):
            yield f"{prefix}.{one}", thing


def collect(package: griffe.Module) -> dict[str, list[Entry]]:
    """The entries of each page, in the order of their source."""
    pages: dict[str, dict[str, Entry]] = {page: {} for page in PAGES}
    page_of = {f"genrec.{module}": page for page, (_, modules) in PAGES.items() for module in modules}
    for name, thing in public_names(package):
        page = page_of.get(thing.module.path)
        if page is None:
            raise SystemExit(
                f"scripts/api_reference.py: no page of PAGES has {thing.module.path}, the module of {name}; "
                "add it to one"
            )
        entry = pages[page].setdefault(thing.path, Entry(thing, []))
        entry.names.append(name)

    def place(entry: Entry) -> tuple[int, int]:
        _, modules = PAGES[page_of[entry.thing.module.path]]
        return modules.index(entry.thing.module.path.removeprefix("genrec.")), entry.thing.lineno or 0

    return {page: sorted(entries.values(), key=place) for page, entries in pages.items()}


# -- signatures --------------------------------------------------------------------------------------------------------


def signature(name: str, function: griffe.Function, is_method: bool) -> str:
    """`name(parameters) -> result`, on several lines where it is long."""
    parameters = [p for i, p in enumerate(function.parameters) if not (is_method and i == 0)]
    texts, seen_star = [], False
    for one in parameters:
        kind = one.kind.value if one.kind else ""
        star = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        if kind == "keyword-only" and not seen_star:
            texts.append("*")
        seen_star = seen_star or kind in ("keyword-only", "variadic positional")
        text = star + one.name + (f": {annotation(one.annotation)}" if one.annotation is not None else "")
        if one.default is not None and not star:
            text += f" = {one.default}" if one.annotation is not None else f"={one.default}"
        texts.append(text)
    gives = function.returns is not None and function.name != "__init__"
    returns = f" -> {annotation(function.returns)}" if gives else ""
    line = f"{name}({', '.join(texts)}){returns}"
    if len(line) <= 100:
        return line
    return f"{name}(\n" + "".join(f"    {text},\n" for text in texts) + f"){returns}"


def annotation(of: object) -> str:
    """An annotation without the quotes of forward references, and without the Union that these need."""
    text = re.sub(r"""["']([\w\[\], .|]+)["']""", r"\1", str(of))
    union = re.fullmatch(r"Union\[(.*)\]", text)
    return re.sub(r", (?![^\[]*\])", " | ", union[1]) if union else text


def shown_name(entry: Entry) -> str:
    """The name that a page shows: the shortest."""
    return min(entry.names, key=lambda name: (len(name), name))


# -- docstrings --------------------------------------------------------------------------------------------------------


def body(thing: griffe.Object) -> str:
    """A docstring as Markdown."""
    if thing.docstring is None:
        return ""
    parts = []
    for section in thing.docstring.parsed:
        kind = section.kind.value
        if kind == "text":
            parts.append(code_blocks(section.value))
        elif kind == "parameters":
            parts.append("\n".join(f"- `{one.name}`: {join(one.description)}" for one in section.value))
        elif kind in ("returns", "yields"):
            parts.append("**Returns** " + " ".join(join(one.description) for one in section.value))
        elif kind == "raises":
            parts += [f"**Raises** `{annotation(one.annotation)}`: {join(one.description)}" for one in section.value]
        elif kind == "attributes":
            parts.append("\n".join(f"- `{one.name}`: {join(one.description)}" for one in section.value))
        elif kind == "admonition" and section.title == "Example":
            parts.append(f"```pycon\n{section.value.description}\n```")
        elif kind == "admonition":
            parts.append(f"**{section.title}** {join(section.value.description)}")
        else:
            raise SystemExit(f"scripts/api_reference.py: {thing.path} has a docstring section of kind '{kind}'")
    return "\n\n".join(part.strip() for part in parts if part.strip())


def join(text: str) -> str:
    """A description on one line, as a list of Markdown wants it."""
    return " ".join(text.split())


def code_blocks(text: str) -> str:
    """Prose with a paragraph on a line, so that no line of it reads as Markdown; indented code as fenced code."""
    result = []
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        if all(line.startswith("    ") for line in lines):
            code = "\n".join(line[4:] for line in lines)
            if result and result[-1].endswith("\n```"):
                result[-1] = result[-1].removesuffix("\n```") + f"\n\n{code}\n```"
            else:
                result.append(f"```python\n{code}\n```")
        elif lines[0].startswith("- "):
            result.append("\n".join(f"- {join(item)}" for item in re.split(r"^- ", paragraph, flags=re.MULTILINE)[1:]))
        else:
            result.append(join(paragraph))
    return "\n\n".join(result)


# -- pages -------------------------------------------------------------------------------------------------------------

DOCUMENTED = ("__call__", "__getitem__", "__contains__", "__iter__", "__len__", "__pow__")
"""Methods with names of Python's that users reach by writing something else, and that are shown where documented."""


def methods_of(cls: griffe.Class) -> Iterator[griffe.Object]:
    """Public methods and properties of a class, in the order of its source; those of `PARTS` come first."""
    bases = [base for base in cls.mro() if base.path in PARTS]
    for name, member in [pair for one in (*bases, cls) for pair in one.members.items()]:
        if member.is_alias or not (member.is_function or "property" in member.labels):
            continue
        if (not name.startswith("_") or name in DOCUMENTED) and member.docstring is not None:
            yield member


def write_entry(entry: Entry) -> str:
    """The section of one public name."""
    thing, name = entry.thing, shown_name(entry)
    parts = [f"## {name}"]
    if thing.is_function:
        parts.append(f"```python\n{signature(name, thing, False)}\n```")
    elif thing.is_class:
        init = thing.members.get("__init__")
        if thing.path in NOT_MADE:
            pass
        elif init is not None and init.is_function:
            parts.append(f"```python\n{signature(name, init, True)}\n```")
        elif "dataclass" in thing.labels and (fields := dataclass_signature(name, thing)):
            parts.append(f"```python\n{fields}\n```")
    elif thing.is_attribute:
        parts.append(f"```python\n{name} = {thing.value}\n```")
    others = [other for other in entry.names if other != name]
    if others:
        parts.append("Also " + ", ".join(f"`{other}`" for other in others) + ".")
    parts.append(body(thing))
    if thing.is_class:
        short = name.split(".")[-1]
        instance = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", short).lower()
        for method in methods_of(thing):
            heading = f"{short}.{method.name}"
            # Markdown would read the underscores.
            parts.append(f"### `{heading}`" if method.name.startswith("__") else f"### {heading}")
            if method.is_function:
                called = instance if method.name == "__call__" else f"{instance}.{method.name}"
                if not method.name.startswith("__") or method.name == "__call__":
                    parts.append(f"```python\n{signature(called, method, 'staticmethod' not in method.labels)}\n```")
            elif method.annotation is not None:
                parts.append(f"```python\n{instance}.{method.name}: {annotation(method.annotation)}\n```")
            parts.append(body(method))
    return "\n\n".join(part for part in parts if part)


def dataclass_signature(name: str, cls: griffe.Class) -> str:
    """How a dataclass is made."""
    fields = [
        f"{one.name}: {annotation(one.annotation)}" + (f" = {one.value}" if one.value is not None else "")
        for one in cls.members.values()
        if one.is_attribute and "instance-attribute" in one.labels and not one.name.startswith("_")
    ]
    line = f"{name}({', '.join(fields)})"
    return line if len(line) <= 100 else f"{name}(\n" + "".join(f"    {field},\n" for field in fields) + ")"


def write_page(page: str, entries: list[Entry]) -> str:
    """A page: its names, then each."""
    title, modules = PAGES[page]
    files = ", ".join(f"`{module.replace('.', '/')}.py`" for module in modules)
    parts = [
        f"# {title}",
        f"<!-- Generated from the docstrings of python/genrec ({files}) by make docs; edit those instead. -->",
        "The [index](README.md) says how to read shapes, and which `batch`, `items`, `model` and `run` examples have.",
        "\n".join(
            f"- [`{name}`](#{link}): {first_sentence(entry.thing)}"
            for (name, link), entry in zip(anchors(entries).items(), entries, strict=True)
        ),
        *(write_entry(entry) for entry in entries),
    ]
    return "\n\n".join(parts) + "\n"


def anchors(entries: list[Entry]) -> dict[str, str]:
    """How links name the heading of each entry of a page: equal ones are numbered, `nn.dropout` after `nn.Dropout`."""
    result, count = {}, {}
    for entry in entries:
        name = shown_name(entry)
        text = re.sub(r"[^\w\-]", "", name.lower())
        result[name] = f"{text}-{count[text]}" if text in count else text
        count[text] = count.get(text, 0) + 1
    return result


def first_sentence(thing: griffe.Object) -> str:
    """What an index says of a name: the beginning of its docstring, to the first stop outside of parentheses."""
    text = join(thing.docstring.value.split("\n\n")[0]) if thing.docstring is not None else ""
    depth = 0
    for place, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and letter in ".:;" and text[place + 1 : place + 2] in ("", " "):
            return text[:place] + "."
    return text


def write_index(package: griffe.Module, pages: dict[str, list[Entry]]) -> str:
    """The page that leads to the others."""
    lines = [
        "# The Python package",
        "",
        "<!-- Generated from the docstrings of python/genrec by make docs; edit those instead. -->",
        "",
        "The reference of every public name. [The guide](../guide.md) is where to begin; "
        "[the op reference](../reference/ops.md) says what the compiler makes of a model.",
        "",
        "| page | names |",
        "| --- | --- |",
    ]
    for page, (title, _) in PAGES.items():
        names = ", ".join(f"[`{name}`]({page}.md#{link})" for name, link in anchors(pages[page]).items())
        lines.append(f"| [{title}]({page}.md) | {names} |")
    lines += [
        "",
        "`gr` is `import genrec as gr`, `nn` is `from genrec import nn`, `data` is `from genrec import data`.",
        "",
        "## How to read a shape",
        "",
        "A value is a table of rows, and its shape is that of *one row*: `[]` is a number per row, `[d]` a vector of d "
        "numbers per row. Whose rows they are is the value's domain, which the examples print: "
        "`<[16] float32, one per 'history'>` has 16 floats for every event of every history. How many rows there are "
        "is never written. A *shared* value (a parameter, a constant) belongs to all rows.",
        "",
        "## The data of the examples",
        "",
        "Examples are lines of a model's `forward(batch)`; modules in them stand for attributes of the model, and "
        "`items` for a catalogue of items. Every one is run by `make check`, and prints what is shown. `batch` has "
        "this schema, a row per request:",
        "",
        "```python",
        *EXAMPLE_SCHEMA.splitlines(),
        "```",
        "",
        "Examples of [compiling and running](runs.md) go on from this:",
        "",
        "```python",
        *EXAMPLE_MODEL.splitlines(),
        "```",
        "",
        "## Types in signatures",
        "",
    ]
    for path in TYPES:
        thing = package[path]
        name = path.rsplit(".", 1)[1]
        lines += [f"- `{name}` = `{annotation(thing.value)}`: {join(thing.docstring.value)}"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description="writes the reference of the Python package")
    parser.add_argument("folder", type=Path, help="where the pages go")
    folder = parser.parse_args().folder
    try:
        package = load_package()
    except ImportError:
        sys.exit("scripts/api_reference.py: griffe is missing; run scripts/setup, which installs it")
    pages = collect(package)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text(write_index(package, pages))
    for page, entries in pages.items():
        (folder / f"{page}.md").write_text(write_page(page, entries))


if __name__ == "__main__":
    main()
