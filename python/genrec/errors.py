"""What goes wrong, in the words and at the place of whoever can mend it."""

from genrec.source import Place
from genrec.tracebacks import ShortTraceback


class GenRecError(ShortTraceback, Exception):
    """Base of every error of this package. Tracebacks show the user's frames; `GENREC_TRACEBACK=1` shows ours too."""


class ModelError(GenRecError):
    """A mistake in a model, at the user's file and line.

    `message` states the rule and the values it met; `place` is the expression at fault, of which `label` says what it
    is; `help` says how to mend it. `str()` shows all of it with the source line:

        ranker.py:41: error: 'add' mixes rows of 'request' and 'impression'
           41 |     score = user_vector + item_vector
              |             ^^^^^^^^^^^ one row per request (made at ranker.py:33)
          help: fan it out: user_vector.fanout(batch.impression), or use gr.concat, which fans out by itself
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
    """

    def __str__(self) -> str:
        return Exception.__str__(self)


class DataError(GenRecError, ValueError):
    """Data that cannot be read or turned into what the runtime reads; names the file, and column and row if known."""


class CompileError(GenRecError):
    """The compiler refused the model or could not be run; its message is the text."""


class RunError(GenRecError):
    """The compiled binary failed; its message is the text, `status` its exit status (negative: killed by a signal)."""

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
