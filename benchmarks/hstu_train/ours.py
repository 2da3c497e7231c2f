"""Our side: examples/hstu_retrieval, compiled as any user compiles it, trained by the binary."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from prepare import Sequences, load_example


@dataclass(frozen=True)
class Binary:
    """A compiled model, and how long genrec-compile took over it, in seconds."""

    path: Path
    compile_seconds: float


@dataclass(frozen=True)
class Run:
    """What a run of the binary measured: seconds of every step after the first, as seen from outside, the losses of all
    steps, and the binary's own report.
    """

    seconds: list[float]
    losses: list[float]
    report: dict[str, object]

    @property
    def first_step_seconds(self) -> float:
        """From the start of the process to the end of its first step."""
        return float(self.report["timings"]["start_to_first_step_seconds"])  # type: ignore[index]


def compile_model(build_folder: Path, sequences: Sequences, out: Path) -> Binary:
    """Compiles the example for the data of `sequences`: position bias only, as the peer runs it here."""
    import genrec as gr

    example = load_example("hstu_retrieval", "model")
    fields = {"user": gr.int64, "history": [{"item": gr.int64, "next": gr.int64}], "held_out": gr.int64}
    model = example.Retrieval(gr.catalogue(sequences.items, id="item"))
    file = out / "model.genrec"
    gr.write_model(gr.record(model, gr.Schema(fields)), file)
    binary = out / "model"
    begin = time.perf_counter()
    command = [
        str(build_folder / "bin" / "genrec-compile"),
        str(file),
        "-O2",
        "--emit=binary",
        "--cache=none",
        "-o",
        str(binary),
    ]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"hstu_train: error: genrec-compile failed\n{result.stderr}")
    return Binary(binary, time.perf_counter() - begin)


def run(binary: Binary, sequences: Sequences, steps: int, batch: int, threads: int, out: Path) -> Run:
    """Trains `steps` steps on the sequences in their order. Raises SystemExit where the binary fails."""
    report = out / "ours.json"
    epochs = 1 + steps * batch // len(sequences.lengths)
    command = [
        str(binary.path), "train", "--data", str(sequences.train), "--catalogue", f"items={sequences.items}",
        "--epochs", str(epochs), "--max-steps", str(steps), "--batch", str(batch), "--threads", str(threads),
        "--seed", "1", "--no-shuffle", "--progress", "json", "--log-every", "1", "--metrics-json", str(report),
    ]  # fmt: skip
    seen: list[tuple[float, float]] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        for line in process.stdout:
            now = time.perf_counter()
            event = json.loads(line)
            if event["event"] == "step":
                seen.append((now, event["loss"]))
        errors = process.stderr.read()
    if process.returncode or len(seen) != steps:
        status = process.returncode
        sys.exit(f"hstu_train: error: the binary gave {len(seen)} of {steps} steps, status {status}\n{errors}")
    seconds = [after - before for (before, _), (after, _) in zip(seen, seen[1:], strict=False)]
    return Run(seconds, [loss for _, loss in seen], json.loads(report.read_text()))
