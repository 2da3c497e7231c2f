"""A compiled model: a handle that trains, evaluates, predicts and exports by driving the binary."""

import json
import math
import subprocess
from collections.abc import Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

from genrec.driver import cannot_run, drive
from genrec.errors import RunError
from genrec.hints import OF_COMPILED, close_to
from genrec.launcher import launcher_words
from genrec.recording import Recording
from genrec.run import Run
from genrec.warm_start import Init, init_entries

PathOrPaths = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A file, a folder, a pattern, or several of them."""

_PATHS = ("data", "validation", "init")


class CompiledModel:
    """A binary made by `gr.compile`, or by genrec-compile: `CompiledModel("path/to/model")`.

    All commands of the binary can also be run from a shell, without Python; `<binary> train --help` lists the
    flags. Methods take every flag as a keyword: `clip_norm=1.0` is `--clip-norm 1.0`, `check_finite=True` is
    `--check-finite`. They show progress unless `progress=False`, and raise `RunError` with the binary's own message
    where it fails.

    Example:
        >>> model = gr.CompiledModel("ranker")  # a binary that was compiled before
        >>> model.summary()
        '1 table, 2 parameters (17 weights)'
    """

    def __init__(
        self,
        binary: str | PathLike[str],
        model_file: str | PathLike[str] | None = None,
        recording: Recording | None = None,
    ) -> None:
        self.binary = Path(binary).absolute()
        self.model_file = Path(model_file) if model_file is not None else None
        self.recording = recording
        self._trained: Path | None = None

    def __repr__(self) -> str:
        return f"<compiled model {self.binary}>"

    def __getattr__(self, name: str) -> NoReturn:
        help = "" if name.startswith("_") else OF_COMPILED.get(name) or close_to(name, dir(type(self)))
        raise AttributeError(f"a compiled model has no '{name}'" + (f"; {help}" if help else ""))

    def summary(self) -> str:
        """The size of the model in one line: ops as recorded, tables, parameters.

        Example:
            >>> model.summary()
            '16 model ops, 1 table, 2 parameters (17 weights)'
        """
        info = self.info()
        weights = sum(math.prod(parameter["shape"]) for parameter in info["parameters"])
        parts = [f"{len(self.recording.ops)} model ops"] if self.recording is not None else []
        for name, count in (("table", len(info["tables"])), ("parameter", len(info["parameters"]))):
            parts.append(f"{count} {name}{'' if count == 1 else 's'}")
        return ", ".join(parts) + f" ({weights:,} weights)"

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that `evaluate`, `predict` and `export` read by default: the folder that `train` of this
        object last saved to; `<binary>.checkpoint` before any training.

        Example:
            >>> model.checkpoint.name
            'ranker.checkpoint'
        """
        return self._trained or self._default_checkpoint

    @property
    def _default_checkpoint(self) -> Path:
        return Path(f"{self.binary}.checkpoint")

    def train(
        self,
        data: PathOrPaths,
        validation: PathOrPaths | None = None,
        epochs: int = 1,
        batch: int | None = None,
        seed: int | None = None,
        lr: float | None = None,
        threads: int | None = None,
        checkpoint: str | PathLike[str] | bool = True,
        catalogues: Mapping[str, str | PathLike[str]] | None = None,
        progress: bool | None = None,
        patience: int | None = None,
        monitor: str | None = None,
        tensorboard: str | PathLike[str] | None = None,
        profile: str | PathLike[str] | None = None,
        init: Init = None,
        resume: bool = False,
        overwrite: bool = False,
        keep: int | None = None,
        ranks: int | None = None,
        portions: int | None = None,
        launcher: Sequence[str] = (),
        continue_from: str | PathLike[str] | None = None,
        **flags: Any,
    ) -> Run:
        """Trains on Parquet files, evaluates on `validation` after each epoch, and returns the results.

        `batch` counts rows of the root domain. `lr` replaces the model's largest learning rate; others keep their ratio
        to it. `checkpoint`: a folder, True for the default one, False to save nothing. `catalogues` maps names of
        catalogues to files that replace those of the model. `patience` stops after so many evaluations that did not
        improve `monitor` ("loss" unless given, or a metric's name); `Run.best_checkpoint` has the best one's state.
        `tensorboard` is a folder for curves, `profile` one for a table and a trace of where the time went
        (`Run.profile`).

        `continue_from` goes on with a checkpoint's tables, optimizer states and steps on other data, as a new day's:
        epochs begin at 1. It may be the folder that is saved to. With `eval_before_train=True`, files are trained on
        one after another, and each is evaluated first (`Run.before`).

        A folder that has a checkpoint is refused with a `RunError`, unless `resume` continues its run, `continue_from`
        names it or `overwrite` starts a new one. The newest `keep` generations are kept (2 unless given). A NaN or
        infinite loss ends the run with a `RunError` that names the step and your line, unless `allow_nonfinite=True`.
        `clock` gives steps their times, where a table has a `ttl` in seconds (`gr.Table`): a column of the data, "time"
        for timestamps and dates, "time:s" (or ms, us, ns) for integers since 1970; or "machine", the default. In a step
        it is the latest time of the whole batch, and never goes back. So a run over old data forgets as it would have
        then, if days come in order: `shuffle=False`, or one day after another with `continue_from`.

        More flags: `eval_every`, `eval_epochs`, `shuffle`, `shuffle_window`, `batch_tokens` ("history=76800"),
        `schedule`, `warmup`, `clip_norm`, `max_steps`, `metrics_json` and so on.

        `checkpoint=True` is the folder `<binary>.checkpoint`. Later calls of `evaluate`, `predict` and `export` read
        the folder of the last training unless they are given another.

        `init` starts from given weights, with fresh optimizer states. A path (the folder of an export or of a
        checkpoint, or a safetensors file) fills all tables and parameters that have a name in it. A mapping fills
        tables and parameters by name, each from a path (also a `.npy` array, or a Parquet table of ids and vectors),
        from `(path, its name there)`, from an array, or from `(ids, vectors)`. A list combines several of these, names
        first. A table takes rows [n, dim] (an array without ids: for the ids 0 to n - 1), a parameter its own shape.
        `Run.init` lists what was filled and what was not.

        `ranks` trains on so many processes with the tables sharded among them: `mpirun` starts them on this machine,
        each with cores of its own where there are enough. `portions` pieces of each batch (one per rank unless given)
        give the same losses and checkpoints on any number of ranks, to the last bit. A run keeps all rows of small
        tables on every rank where that saves time; `replicate=["country"]` or `replicate="none"` overrides its choice. `launcher` names
        another program that starts them, with its flags: `["mpirun", "--hostfile", "hosts"]`, `["srun", "--mpi=pmix"]`.
        Ctrl-C and SIGTERM end all ranks after the same step, with one checkpoint. A missing mpirun is a `RunError` that
        says what to install. `shard_optimizer=True` makes ranks share the optimizer states of dense parameters.

        Example:
            >>> run = model.train("train.parquet", validation="valid.parquet", epochs=2, batch=64, checkpoint=False)
            epoch 1  loss ...
            >>> run.metrics["auc"] > 0.5
            True
            >>> vectors = ([7, 9], [[0.5] * 16, [0.25] * 16])
            >>> again = model.train("train.parquet", init={"item": vectors}, checkpoint=False, progress=False)
            >>> again.init["filled"][0]["name"], again.init["not_filled"]
            ('item', ['score.weight', 'score.bias'])
        """
        folder = self._checkpoint_flag(checkpoint)
        with init_entries(init) as entries:
            arguments = self._arguments(
                {"data": data, "validation": validation, "epochs": epochs, "batch": batch, "seed": seed, "lr": lr,
                 "threads": threads, "checkpoint": folder, "patience": patience, "monitor": monitor,
                 "tensorboard": tensorboard, "profile": profile, "init": entries or None, "resume": resume,
                 "overwrite": overwrite, "keep": keep, "portions": portions, "continue": continue_from, **flags},
                catalogues,
            )  # fmt: skip
            try:
                events = drive([str(self.binary), "train", *arguments], progress, launcher_words(ranks, launcher))
            except (RunError, KeyboardInterrupt):
                # It may have saved before.
                if folder is not None and (folder / "manifest.json").exists():
                    self._trained = folder.absolute()
                raise
        if folder is not None:
            self._trained = folder.absolute()
        return Run(events, folder)

    def evaluate(
        self,
        data: PathOrPaths,
        checkpoint: str | PathLike[str] | None = None,
        batch: int | None = None,
        threads: int | None = None,
        catalogues: Mapping[str, str | PathLike[str]] | None = None,
        progress: bool | None = None,
        ranks: int | None = None,
        portions: int | None = None,
        launcher: Sequence[str] = (),
        **flags: Any,
    ) -> dict[str, float | None]:
        """The metrics of a checkpoint on data; with "loss" if the model has one. A metric for which no row counts is
        None (printed as "no rows"), and so is an undefined one, such as the AUC of a single class. `ranks`, `portions`
        and `launcher`: as `train` takes them.

        Example:
            >>> sorted(model.evaluate("valid.parquet", progress=False))
            ['auc', 'loss']
        """
        arguments = self._arguments(
            {"data": data, "checkpoint": self._read(checkpoint), "batch": batch, "threads": threads,
             "portions": portions, **flags},
            catalogues,
        )  # fmt: skip
        events = drive([str(self.binary), "evaluate", *arguments], progress, launcher_words(ranks, launcher))
        record: dict[str, Any] = next((event for event in reversed(events) if event["event"] == "evaluation"), {})
        loss = {"loss": record["loss"]} if "loss" in record else {}
        return {**loss, **record.get("metrics", {})}

    def predict(
        self,
        data: PathOrPaths,
        out: str | PathLike[str],
        keys: str | Sequence[str] = (),
        checkpoint: str | PathLike[str] | None = None,
        batch: int | None = None,
        threads: int | None = None,
        catalogues: Mapping[str, str | PathLike[str]] | None = None,
        progress: bool | None = None,
        ranks: int | None = None,
        portions: int | None = None,
        launcher: Sequence[str] = (),
        **flags: Any,
    ) -> "Path | dict[str, Any]":
        """Writes the model's outputs for each row of `data` to the Parquet file `out`, and returns its path. `keys` are
        columns of the data to copy.

        If outputs are of several domains (a score per impression and a value per request), `out` is a folder, which
        gets a file `<domain>.parquet` of each. The result is then a dict of pyarrow tables by domain. Keys of the root
        are copied to each file, keys of a list to the file of its rows. `ranks`, `portions` and `launcher`: as `train`
        takes them; rows are in the order of `data` on any number of ranks.

        Example:
            >>> path = model.predict("valid.parquet", "scores.parquet", keys=["user"], progress=False)
            >>> pl.read_parquet(path).columns
            ['user', 'probability']
        """
        named = [keys] if isinstance(keys, str) else list(keys)
        arguments = self._arguments(
            {"data": data, "out": out, "keys": named or None, "checkpoint": self._read(checkpoint),
             "batch": batch, "threads": threads, "portions": portions, **flags},
            catalogues,
        )  # fmt: skip
        command = [str(self.binary), "predict", *arguments]
        written = drive(command, progress, launcher_words(ranks, launcher))[-1].get("tables", {})
        if len(written) < 2:
            return Path(out)
        import pyarrow.parquet as pq

        return {name: pq.read_table(table["file"], memory_map=True) for name, table in written.items()}

    def export(
        self,
        out: str | PathLike[str],
        checkpoint: str | PathLike[str] | None = None,
        catalogues: Mapping[str, str | PathLike[str]] | None = None,
        **flags: Any,
    ) -> list[Path]:
        """Writes item vectors, parameters and tables of a checkpoint to the folder `out` as safetensors; returns the
        files.

        Example:
            >>> sorted(path.name for path in model.export("exported"))
            ['parameters.safetensors', 'tables.safetensors']
        """
        arguments = self._arguments({"out": out, "checkpoint": self._read(checkpoint), **flags}, catalogues)
        done = drive([str(self.binary), "export", *arguments], False)[-1]
        return [Path(entry["file"]) for entry in done.get("files", [])]

    def info(self) -> dict[str, Any]:
        """The contents of the binary: domains, columns, tables, parameters, losses, metrics.

        Example:
            >>> info = model.info()
            >>> [table["name"] for table in info["tables"]]
            ['item']
        """
        command = [str(self.binary), "info", "--json"]
        try:
            result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        except OSError as error:
            raise cannot_run(command, error) from error
        if result.returncode != 0:
            raise RunError(result.stderr.strip() or f"{self.binary}: info failed", result.returncode)
        return json.loads(result.stdout)

    def _read(self, checkpoint: str | PathLike[str] | None) -> str | PathLike[str] | None:
        """The checkpoint that a command reads; None for a model of transforms alone, which needs none."""
        if checkpoint is None and not self.checkpoint.exists():
            info = self.info()
            if not info["tables"] and not info["parameters"]:
                return None
        return self.checkpoint if checkpoint is None else checkpoint

    def _checkpoint_flag(self, checkpoint: str | PathLike[str] | bool) -> Path | None:
        if isinstance(checkpoint, bool):
            return self._default_checkpoint if checkpoint else None
        if checkpoint == "":
            raise ValueError("'checkpoint' is an empty text; name a folder, or False to save nothing")
        return Path(checkpoint)

    def _arguments(self, values: Mapping[str, Any], catalogues: Mapping[str, str | PathLike[str]] | None) -> list[str]:
        """Keywords as flags of the binary."""
        arguments = ["--progress", "json"]
        for name, value in values.items():
            flag = "--" + name.replace("_", "-")
            if value is None:
                continue
            if value is True:
                arguments.append(flag)
            elif value is False:
                # Only --shuffle is on unless switched off.
                arguments += ["--no-shuffle"] if name == "shuffle" else []
            elif name in _PATHS and not isinstance(value, str | PathLike):
                if not isinstance(value, list | tuple):
                    raise TypeError(
                        f"'{name}' takes paths of Parquet files, got {type(value).__name__}; write a frame first: "
                        'genrec.data.write(frame, "rows.parquet")'
                    )
                # A path may have commas.
                for path in value:
                    arguments += [flag, fspath(path)]
            else:
                arguments += [flag, _text(value)]
        for name, path in (catalogues or {}).items():
            arguments += ["--catalogue", f"{name}={fspath(path)}"]
        return arguments


def _text(value: Any) -> str:
    """A flag's value as the command line writes it; lists are separated by commas."""
    if isinstance(value, str | PathLike):
        return fspath(value)
    if isinstance(value, Sequence):
        return ",".join(_text(one) for one in value)
    return repr(value) if isinstance(value, float) else str(value)
