"""From a recorded model to a binary: writes the model file and calls genrec-compile."""

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from os import PathLike
from pathlib import Path

from genrec import plugins
from genrec.compiled import CompiledModel
from genrec.errors import CompileError
from genrec.model import Model, record
from genrec.model_file import write_model
from genrec.schema import Schema

_CHECKOUT = Path(__file__).resolve().parents[2]


def find_tool(name: str) -> str:
    """The path of a tool of genrec: in the folder GENREC_BIN, in the checkout's build/bin, or on PATH.

    Raises `CompileError` that lists where it looked.
    """
    folders = [os.environ.get("GENREC_BIN"), str(_CHECKOUT / "build" / "bin")]
    for folder in filter(None, folders):
        found = shutil.which(name, path=folder)
        if found is not None:
            return found
    found = shutil.which(name)
    if found is None:
        sought = ", ".join(filter(None, [*folders, "PATH"]))
        raise CompileError(f"{name} was not found in {sought}\n  help: run `make build`, or set GENREC_BIN")
    return found


def compile(
    model: Model,
    schema: Schema,
    target: str = "cpu",
    output: str | PathLike[str] | None = None,
    opt: int = 2,
    keep_cpp: str | PathLike[str] | bool | None = None,
    flags: Sequence[str] = (),
    mixed_precision: bool = False,
) -> CompiledModel:
    """Records `model` for data of `schema` and compiles it to one binary.

    `output`: the binary, or the folder for one of the model's name; the current folder unless given. The model file
    lies beside it, with `.genrec` at its end. `target`: cpu; cuda, for a GPU; or cuda-emulated, the same code on the
    host with every access checked, for tests. `opt`: 0 (a kernel per op), 1 or 2. `keep_cpp`: where to keep the emitted
    C++, True for `<binary>.cpp` (of CUDA: `.cu`). `flags`: more flags of genrec-compile. `mixed_precision`: round the
    factors of all products to bfloat16, as `gr.autocast` around the whole model.

    Raises `ModelError` for a mistake in the model, `CompileError` if the compiler refuses it or cannot run.

    Example:
        >>> model = gr.compile(Ranker(), gr.Schema.from_parquet("train.parquet"), output="ranker")
        >>> model.binary.name, model.model_file.name
        ('ranker', 'ranker.genrec')
    """
    if opt not in (0, 1, 2):
        raise ValueError(f"opt must be 0, 1 or 2, got {opt!r}")
    if isinstance(flags, str):
        raise TypeError(f"flags takes a list of flags, [{flags!r}], got the text {flags!r}")
    recording = record(model, schema)
    binary = Path(output if output is not None else ".").absolute()
    if binary.is_dir():
        binary /= _file_name(recording.name)
    model_file = Path(f"{binary}.genrec")
    _check_output(binary)
    try:
        binary.parent.mkdir(parents=True, exist_ok=True)
        write_model(recording, model_file)
    except OSError as error:
        raise CompileError(f"{model_file}: cannot be written: {error.strerror}") from error
    command = [
        find_tool("genrec-compile"),
        str(model_file),
        f"--target={target}",
        f"-O{opt}",
        *(f"--plugin={file}" for file in plugins.loaded),
        "-o",
        str(binary),
        *(["--mixed-precision"] if mixed_precision else []),
        *flags,
    ]
    if keep_cpp:
        command.append("--save-temps")
    result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        message = result.stderr.strip() or f"genrec-compile ended with status {result.returncode}"
        raise CompileError(message)
    if keep_cpp and keep_cpp is not True:
        sources = [path for end in ("cpp", "cu") if (path := Path(f"{binary}.{end}")).exists()]
        emitted = max(sources, key=lambda path: path.stat().st_mtime)
        if emitted != Path(keep_cpp).absolute():
            shutil.move(emitted, keep_cpp)
    return CompiledModel(binary, model_file, recording)


def _check_output(binary: Path) -> None:
    """Raises `CompileError` for an existing file that is no program: a model's source or data, named by mistake."""
    if binary.suffix in (".py", ".genrec", ".parquet", ".cpp"):
        raise CompileError(
            f"output {binary.name}: the name of a binary does not end in {binary.suffix}\n"
            f"  help: output={str(binary.with_suffix(''))!r}; the model file lies beside it"
        )
    if binary.is_file():
        with open(binary, "rb") as file:
            if file.read(4) not in (b"\x7fELF", b""):
                raise CompileError(f"{binary} exists and is no compiled model\n  help: name another output")


def _file_name(name: str) -> str:
    """ "RequestRanker" as "request_ranker"."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
