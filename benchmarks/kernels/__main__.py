"""Rates of the CPU kernels on this machine.

    build/venv/bin/python benchmarks/kernels [attention|rank|sampled_softmax …] [--threads N]

Compiles each program for this machine against the runtime that `make build` has built, runs it and prints its table.
Flags of other benchmarks (--peer) are passed over.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def compile_program(source: Path, build: Path) -> Path:
    """The program of one source file, compiled for this machine."""
    program = build / "bench" / "kernels" / source.stem
    program.parent.mkdir(parents=True, exist_ok=True)
    command = ["clang++-22", "-std=c++20", "-O3", "-march=native", "-mprefer-vector-width=512", "-ffp-contract=off"]
    command += [f"-I{ROOT / 'runtime' / 'include'}", str(source), str(build / "lib" / "libgenrec_rt.a"), "-lpthread"]
    command += ["-o", str(program)]
    subprocess.run(command, check=True)
    return program


def main() -> int:
    """Runs the programs asked for, all by default."""
    programs = {path.stem: path for path in sorted(HERE.glob("*.cpp"))}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="program", help=", ".join(programs))
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args, _ = parser.parse_known_args()
    build = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))
    if not (build / "lib" / "libgenrec_rt.a").exists():
        print(f"[bench]   error: {build} has no lib/libgenrec_rt.a: run make build first", file=sys.stderr)
        return 1
    for name in args.names or programs:
        if name not in programs:
            parser.error(f"there is no program {name}, but {', '.join(programs)}")
        print(f"[bench]   {name}", flush=True)
        subprocess.run([compile_program(programs[name], build), str(args.threads)], check=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
