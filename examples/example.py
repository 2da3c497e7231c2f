"""What the programs of several examples share."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]


def load_example(example: str, name: str) -> ModuleType:
    """A module of an example, which is no package."""
    path = ROOT / "examples" / example / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{example}_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def generate(folder: Path, **options: str | int) -> str:
    """Writes data with known truth into `folder` (train.parquet, valid.parquet, references.json and more), and returns
    what genrec-datagen says of it; exits where that fails. `options` are its flags.
    """
    datagen = Path(os.environ.get("GENREC_BIN", ROOT / "build" / "bin")) / "genrec-datagen"
    command = [str(datagen), f"--out={folder}", *(f"--{name}={value}" for name, value in options.items())]
    try:
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"error: {error}; run make build first")
