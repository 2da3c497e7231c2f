"""The errors of this package, which name the user's file and line, the rule that was broken, and a fix."""

from genrec.source import Place
from genrec.tracebacks import ShortTraceback


class GenRecError(ShortTraceback, Exception):
    """Base of every error of this package. Tracebacks show the user's frames; `GENREC_TRACEBACK=1` shows ours too.

    Example:
        >>> try:
        ...     gr.Schema.from_parquet("absent.parquet")
        ... except gr.GenRecError as error:
        ...     print(type(error).__name__)
        DataError
    """


class ModelError(GenRecError):
    """A mistake in a model, at the user's file and line.

    `message` states the rule and the values that break it. `place` is the expression at fault, `label` describes its
    value, `help` says how to fix it. `str()` shows all of this with the source line:

        ranker.py:41: error: 'add' mixes rows of 'request' and 'impression'
           41 |     score = user_vector + item_vector
              |             ^^^^^^^^^^^ one row per request (made at ranker.py:33)
          help: fan it out: user_vector.fanout(batch.impression), or use gr.concat, which fans out by itself

    Example:
        >>> class Mixed(gr.Model):
        ...     def forward(self, batch):
        ...         gr.loss.mean(batch.age + batch.history.price)
        >>> schema = gr.Schema({"age": gr.float32, "history": [{"price": gr.float32}]})
        >>> try:
        ...     gr.record(Mixed(), schema)
        ... except gr.ModelError as error:
        ...     print(error.message)
        'add' mixes rows of 'request' and 'history'
    """

    def __init__(self, message: str, place: Place, label: str = "", help: str = "") -> None:
        self.message = message
        self.place = place
        self.label = label
        self.help = help
        super().__init__(render(message, place, label, help))


class FeatureError(ModelError, AttributeError, KeyError):
    """A feature that a domain does not have, or an attribute that a value does not have; also an AttributeError and a
    KeyError, so `hasattr` works.

    Example:
        >>> class Misspelt(gr.Model):
        ...     def forward(self, batch):
        ...         gr.output(user=batch.usr)
        >>> try:
        ...     gr.record(Misspelt(), gr.Schema({"user": gr.int64}))
        ... except gr.FeatureError as error:
        ...     print(error.message, "--", error.help)
        'request' has no feature 'usr' -- did you mean 'user'? 'request' has user (int64)
    """

    def __str__(self) -> str:
        return Exception.__str__(self)


class DataError(GenRecError, ValueError):
    """Data that cannot be read or turned into what the runtime reads; names the file, and column and row if known.

    Example:
        >>> try:
        ...     data.read("ratings.csv", columns=["user", "rating"])
        ... except gr.DataError as error:
        ...     print(error)
        ratings.csv: no column 'rating'; the file has ['user', 'item', 'time']
    """


class CompileError(GenRecError):
    """The compiler refused the model or could not be run; its message is the text.

    Example:
        >>> try:
        ...     gr.compile(Ranker(), gr.Schema.from_parquet("train.parquet"), target="abacus")
        ... except gr.CompileError as error:
        ...     print("abacus" in str(error))
        True
    """


class RunError(GenRecError):
    """The compiled binary failed; its message is the text, `status` its exit status (negative: killed by a signal).

    Example:
        >>> try:
        ...     model.evaluate("absent.parquet", progress=False)
        ... except gr.RunError as error:
        ...     print(error.status)
        1
    """

    def __init__(self, message: str, status: int) -> None:
        self.status = status
        super().__init__(message)


def render(message: str, place: Place, label: str = "", help: str = "") -> str:
    """The text of a `ModelError`; the source line is left out where it cannot be read."""
    head = f"{place}: " if place.file else ""
    lines = [f"{head}error: {message}"]
    source = place.source_line
    if source.strip():
        lines.append(f"{place.line:5} | {source}")
        begin = place.column - 1
        if 0 <= begin < len(source):
            end = place.end_column - 1 if place.end_line == place.line else len(source)
            indent = "".join("\t" if c == "\t" else " " for c in source[:begin])
            carets = "^" * max(1, min(end, len(source)) - begin)
            lines.append(f"      | {indent}{carets} {label}".rstrip())
    elif label:
        lines.append(f"  {label}")
    if help:
        lines.append(f"  help: {help}")
    return "\n".join(lines)


def quoted(names: object, most: int = 8) -> str:
    """Names for a message: 'a', 'b' and 'c'; only the first `most`, with the number of the others."""
    texts = [f"'{name}'" for name in names]  # type: ignore[attr-defined]
    if not texts:
        return "none"
    if len(texts) > most:
        texts = [*texts[:most], f"{len(texts) - most} more"]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
