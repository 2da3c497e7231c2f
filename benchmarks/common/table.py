"""The table of all benchmarks in benchmarks/README.md, from whatever benchmarks/results holds.

    build/venv/bin/python benchmarks/common/table.py [--check]

Of each benchmark and processor the newest file counts. A file's "summary" is a list of rows: "what", "unit", "ours",
"peer", "theirs", "ratio" (how many times faster ours is), and where they are known "asked" (a ratio), "limit" (in
words) and "limit_share". Files without one have "step_seconds" by contestant.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results"
README = ROOT / "benchmarks" / "README.md"
BEGIN, END = "<!-- results: made by benchmarks/common/table.py -->", "<!-- end of results -->"


def newest(folder: Path) -> list[dict]:
    """The newest results of every benchmark and processor, by benchmark."""
    found: dict[tuple[str, ...], dict] = {}
    for path in sorted(folder.glob("*.json")):
        results = json.loads(path.read_text())
        if "benchmark" not in results:
            continue
        hardware = results.get("hardware", {})
        # Clouds give several generations one name; what they can do tells them apart.
        kind = (hardware.get("processor", "unknown"), *hardware.get("instructions", ()))
        key = (results["benchmark"], *kind)
        if key not in found or found[key].get("date", "") <= results.get("date", ""):
            found[key] = results
    return [found[key] for key in sorted(found)]


OURS = ("genrec", "all passes")  # what our side is called


def step_rows(what: str, results: dict) -> list[dict]:
    """A row for every peer in "step_seconds": all but us, or those that "ratios" names."""
    seconds = results["step_seconds"]
    ours = next(seconds[name] for name in OURS if name in seconds)
    peers = [name for name in results.get("ratios", seconds) if name not in OURS]
    return [
        {"what": f"{what}, a step", "unit": "ms", "ours": ours * 1e3, "peer": name}
        | {"theirs": seconds[name] * 1e3, "ratio": seconds[name] / ours}
        for name in peers
    ]


def rows_of(results: dict) -> list[dict]:
    """The rows of one file: its summary; else those of its steps, or of the steps of its parts."""
    if "summary" in results:
        return results["summary"]
    name = results["benchmark"]
    rows = step_rows(name, results) if "step_seconds" in results else []
    for part, inner in results.items():
        if part.startswith("impressions_"):
            rows += step_rows(f"{name}, {inner['impressions_per_request']:.0f} impressions per request", inner)
    if rows and "share_of_ceiling" in results:
        rows[0] |= {"limit": "the ceiling", "limit_share": results["share_of_ceiling"]}
    return rows


def figure(row: dict, name: str) -> str:
    """A time of a row with its unit, "" where it is not known."""
    return f"{row[name]:,.4g} {row.get('unit', '')}".strip() if name in row else ""


def processor_of(results: dict) -> str:
    """The kind of processor, with its model's number where that is known."""
    hardware = results.get("hardware", {})
    model = f" (model {hardware['model']})" if hardware.get("model") else ""
    return hardware.get("processor", "unknown") + model


def line_of(row: dict, results: dict) -> str:
    """A row of the table: one figure on one kind of processor. A ratio that is less than asked is bold."""
    threads = results.get("arguments", {}).get("threads", results.get("hardware", {}).get("cores", ""))
    where = ", ".join(
        filter(None, (processor_of(results), f"{threads} threads" if threads else "", results.get("date", "")))
    )
    peer = " ".join(word for word in (row.get("peer", ""), figure(row, "theirs")) if word)
    limit = f"{row['limit_share']:.0%} of {row.get('limit', 'the limit')}" if "limit_share" in row else ""
    asked = f"{row['asked']:g}x" if "asked" in row else ""
    ratio = f"{row['ratio']:.2f}x" if "ratio" in row else ""
    if ratio and row["ratio"] < row.get("asked", 0):
        ratio = f"**{ratio}**"
    return f"| {row['what']} | {figure(row, 'ours')} | {peer} | {ratio} | {asked} | {limit} | {where} |"


def table(all_results: list[dict]) -> str:
    """The table as Markdown; the same figure on several kinds of processors stands in rows one below the other."""
    figures: dict[tuple[str, str, str], list[str]] = {}
    for results in all_results:
        for row in rows_of(results):
            key = (results["benchmark"], row["what"], row.get("peer", ""))
            figures.setdefault(key, []).append(line_of(row, results))
    lines = [
        "| what | genrec | peer | ratio | asked | of the machine's limit | measured |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    return "\n".join(lines + [line for group in figures.values() for line in group])


def main() -> int:
    """Writes the table, or with --check says whether it is what the results say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the table is stale")
    args = parser.parse_args()
    text = README.read_text()
    if BEGIN not in text or END not in text:
        print(
            f"[bench]   error: {README.name} has no lines {BEGIN!r} and {END!r} to put the table between",
            file=sys.stderr,
        )
        return 1
    before, rest = text.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    made = f"{before}{BEGIN}\n\n{table(newest(RESULTS))}\n\n{END}{after}"
    if args.check:
        if made != text:
            print(
                f"[bench]   error: the table of {README.relative_to(ROOT)} is not what the results say; "
                "run build/venv/bin/python benchmarks/common/table.py",
                file=sys.stderr,
            )
        return 0 if made == text else 1
    README.write_text(made)
    print(f"[bench]   wrote the table of {README.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
