"""A curve to 1,024 ranks: per-rank costs measured here, exchanges predicted by --explain --world, a stated network.

    build/venv/bin/python benchmarks/scaling              measures, predicts, and writes the tables of docs/scaling.md
    build/venv/bin/python benchmarks/scaling --measure    measures only: build/bench/scaling/times.json
    build/venv/bin/python benchmarks/scaling --predict    from the times that are there

docs/scaling.md says what the columns mean and by which formulas they come about.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks" / "hstu_train")]

import genrec as gr  # noqa: E402
import report  # noqa: E402
from example import generate, load_example  # noqa: E402

LOG = ROOT.parent / "shared" / "data" / "criteo-80k" / "criteo_80k.tsv.zst"
PAGE = ROOT / "docs" / "scaling.md"
WORLDS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


@dataclass(frozen=True)
class Case:
    """An example with data; `rows` root rows per rank and step."""

    name: str
    rows: int
    data: Path
    binary: Path
    steps: int


def cases(out: Path) -> list[Case]:
    """Both examples, with their data made and their binaries compiled."""
    os.environ.setdefault("GENREC_BIN", str(BUILD / "bin"))
    users = out / "users"
    if not (users / "valid.parquet").exists():
        generate(users, kind="retrieval", users=6000, items=20000, seed=1)
    hstu = load_example("hstu_retrieval", "model").Retrieval(gr.catalogue(users / "items.parquet"))
    binary = gr.compile(hstu, gr.Schema.from_parquet(users / "valid.parquet"), output=out / "hstu").binary
    found = [Case("hstu", 128, users / "valid.parquet", binary, 40)]
    if not LOG.exists():
        print(f"\n!!! DLRM IS SKIPPED: there is no click log at {LOG}\n", flush=True)
        return found
    prepare = load_example("criteo_dlrm", "prepare")
    if not (out / "clicks" / "train.parquet").exists():
        prepare.prepare(LOG, out / "clicks")
    clicks = out / "clicks" / "train.parquet"
    dlrm = load_example("criteo_dlrm", "model").DLRM()
    return [*found, Case("dlrm", 2048, clicks, gr.compile(dlrm, prepare.SCHEMA, output=out / "dlrm").binary, 100)]


def measure(case: Case, ranks: int, out: Path) -> float:
    """Milliseconds of a step with `case.rows` rows and one thread per rank."""
    launcher = ["mpirun", "--bind-to", "core", "-n", str(ranks)] if ranks > 1 else []
    if launcher and os.geteuid() == 0:
        launcher.insert(1, "--allow-run-as-root")
    times = out / "m.json"
    subprocess.run(
        [
            *launcher, case.binary, "train", "--data", case.data, "--batch", str(case.rows * ranks), "--epochs", "1000",
            "--max-steps", str(case.steps), "--threads", "1", "--seed", "1", "--progress", "none", "--overlap", "none",
            "--metrics-json", times,
        ],
        check=True,
    )  # fmt: skip
    return json.loads(times.read_text())["timings"]["milliseconds_per_step"]


def predict(case: Case, ranks: int, milliseconds: float, ids: Path) -> dict[str, Any]:
    """The section of ranks of --explain."""
    command = [
        BUILD / "bin" / "genrec-compile", f"{case.binary}.genrec", "--explain=json", f"--world={ranks}",
        f"--batch={case.rows * ranks}", f"--ids={ids}", f"--compute-ms={milliseconds}", "--worker-threads=1",
    ]  # fmt: skip
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["world"]


def count_ids(case: Case, out: Path) -> Path:
    """The ids of the data, after the model's transforms."""
    apart, ids = out / f"{case.name}-apart", out / f"{case.name}-ids.json"
    compiler = BUILD / "bin" / "genrec-compile"
    subprocess.run([compiler, f"{case.binary}.genrec", "--merge-tables=false", "-o", apart], check=True)
    command = [apart, "info", "--data", case.data, "--ids-out", ids]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return ids


def table(case: Case, times: dict[str, float], out: Path) -> str:
    """The curve of one example as Markdown."""
    ids = count_ids(case, out)
    lines = [
        "| ranks | rows KB | gradients KB | dense KB | bytes ms | messages ms | rows/s | of linear | overlapped | "
        "rank MB | most/mean | runs out first |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    alone = 0.0
    for ranks in WORLDS:
        world = predict(case, ranks, times["1" if ranks == 1 else "2"], ids)
        sent = {exchange["exchange"]: exchange["bytes"] / 1e3 for exchange in world["exchanges"]}
        time, memory = world["time"], world["memory"][-1]["bytes"] / 1e6
        speed, hidden = time["rows_per_second"], time["rows_per_second_overlapped"]
        waits = f"{time['network_milliseconds']:.3f} | {time['message_milliseconds']:.3f}"
        alone = alone or speed
        lines.append(
            f"| {ranks:,} | {sent['ids'] + sent['rows']:,.0f} | {sent['gradients']:,.0f} | "
            f"{sent['dense gradients']:,.0f} | {waits} | {speed:,.0f} | {speed / alone / ranks:.0%} | "
            f"{hidden / alone / ranks:.0%} | {memory:,.0f} | {world['imbalance']['served']:.2f} | {time['first']} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measures, predicts, writes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure only")
    parser.add_argument("--predict", action="store_true", help="from times that were measured before")
    parser.add_argument("--out", type=Path, default=BUILD / "bench" / "scaling")
    args = parser.parse_known_args()[0]
    args.out.mkdir(parents=True, exist_ok=True)
    times_file, all_cases = args.out / "times.json", cases(args.out)
    if not args.predict:
        if not shutil.which("mpirun"):
            sys.exit("scaling: error: two ranks are measured with mpirun: install Open MPI")
        times = {case.name: {str(n): measure(case, n, args.out) for n in (1, 2)} for case in all_cases}
        times_file.write_text(json.dumps(times, indent=1) + "\n")
        print(times)
    if args.measure:
        return
    times, page = json.loads(times_file.read_text()), PAGE.read_text()
    for case in all_cases:
        of = times[case.name]
        text = (
            f"{case.rows:,} rows per rank, one thread: {of['1']:.2f} ms a step alone, {of['2']:.2f} ms on two ranks "
            f"({report.hardware()['processor']}, {datetime.date.today()}).\n\n{table(case, of, args.out)}"
        )
        print(text)
        pattern = re.compile(rf"(<!-- curve {case.name} -->\n).*?(\n<!-- end -->)", re.DOTALL)
        page, count = pattern.subn(lambda found, text=text: found[1] + text + found[2], page)
        if count != 1:
            sys.exit(f"scaling: error: {PAGE} has no place for the curve of {case.name}")
    PAGE.write_text(page)


main()
