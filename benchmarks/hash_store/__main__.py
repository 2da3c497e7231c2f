"""The embedding store beside hash maps of ids: find and find-or-insert with 10 M keys, in batches of 4 Mi.

    build/venv/bin/python benchmarks/hash_store [--threads N] [--keys N] [--batch N] [--rounds N]

Peers are boost::unordered_flat_map, absl::flat_hash_map and tbb::concurrent_hash_map from id to address, in one
process, in turns on the same batches. A second run gives their memory huge pages too (malloc does not ask for them by
itself), which the store always has.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

import native  # noqa: E402

HERE = Path(__file__).resolve().parent
BOOST, ABSL, TBB = "boost unordered_flat_map", "absl flat_hash_map", "TBB concurrent_hash_map"
TASKS = {"find": "find", "insert": "insert", "insert, growing": "insert", "find or insert, one in 16 new": "insert"}
ASKED = {(BOOST, "find"): 2, (BOOST, "insert"): 1.8, (TBB, "find"): 6, (TBB, "insert"): 6}


def main() -> int:
    """Builds, runs, prints, writes."""
    parser = native.arguments(__doc__, keys=10_000_000, batch=1 << 22, rounds=3)
    args, _ = parser.parse_known_args()
    absl, tbb = native.package_flags("absl_flat_hash_map", "absl_hash"), native.package_flags("tbb")
    flags = [*(["-DBENCH_ABSL", *absl] if absl else []), *(["-DBENCH_TBB", *tbb] if tbb else [])]
    program = native.compile_program(HERE / "hash_store.cpp", flags)
    sizes = (args.threads, args.keys, args.batch, args.rounds)
    measured = native.run(program, *sizes)
    with_huge_pages = native.run(program, *sizes, GLIBC_TUNABLES="glibc.malloc.hugetlb=1")
    for peer in (BOOST, ABSL, TBB):
        if peer not in measured["nanoseconds_per_id"]["find"]:
            native.skipped(peer, "its headers are not installed; scripts/setup-peers installs them")
    line = measured["nanoseconds_per_random_line"]
    rows = []
    for told, runs in (("", measured), (", huge pages for all", with_huge_pages)):
        for task, times in runs["nanoseconds_per_id"].items():
            medians = native.medians(times)
            ours = medians.pop("genrec")
            for peer, theirs in medians.items():
                more: dict[str, object] = {}
                if not told and (peer, TASKS.get(task)) in ASKED:
                    more["asked"] = ASKED[peer, TASKS[task]]
                if peer == BOOST and task == "find":
                    more |= {"limit": "a random line of slots", "limit_share": line / ours}
                rows.append(native.summary(f"hash store, {task}{told}", "ns per id", ours, peer, theirs, **more))
    native.finish("hash_store", args, rows, {"measured": measured, "measured_with_huge_pages": with_huge_pages})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
