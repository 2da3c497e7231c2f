"""Draws mutants of how the compiler makes CUDA kernels, and says which of them no test sees.

    judge_compiler.py --seed 1 --count 100 [--only RowMapping]

What a mutant makes of a corpus (models of tests, examples, the random models of CI) is compared with what the compiler
makes: one that changes no text is counted apart, and one that ends the compiler is seen. The others are judged by lit,
then by random models on the emulated device, then by row kernels beside the CPU's. `compiler_survivors.json` has those
that nobody sees.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

SOURCE = Path(__file__).parents[3]
sys.path += [str(Path(__file__).parent), "/usr/lib/python3/dist-packages"]  # clang.cindex, as Debian has it
sys.path.insert(0, str(SOURCE / "test/EndToEnd"))
import example_models  # noqa: E402
import mutants  # noqa: E402

FILES = "lib/Conversion/RowKernelToEmitC/"
PROGRAMS = ("genrec-compile", "genrec-fuzz", "genrec-opt")
CI_SEEDS = (*range(1, 11), *range(31, 36), *range(44, 49))
MOST_SEEDS = 3  # of those whose kernels a mutant changes
LIT = "Conversion|Target/Cpp|Pipelines"
CHOSEN = """
#include "simt.h"
#include <cstdlib>
const int simt::defect = std::getenv("MUTANT") ? std::atoi(std::getenv("MUTANT")) : 0;
"""


def ninja(build: Path, *words: str) -> str:
    return subprocess.run(["ninja", "-C", build, "-t", *words], capture_output=True, text=True, check=True).stdout


@dataclass
class Compiler:
    """Programs with all drawn mutants, in a folder that looks like the build's."""

    build: Path
    folder: Path
    drawn: dict[int, mutants.Mutant] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)

    def find(self, only: str) -> list[mutants.Mutant]:
        from clang.cindex import Config, Index

        Config.set_library_path("/usr/lib/llvm-22/lib")
        every: list[mutants.Mutant] = []
        for each in json.loads(ninja(self.build, "compdb")):
            name = each["file"].removeprefix(f"{SOURCE}/")
            if not name.startswith(FILES) or not name.endswith(".cpp") or not re.search(only, name):
                continue
            self.commands[name] = each["command"]
            arguments = [word for word in each["command"].split() if re.match(r"-(I|D|std=)", word)]
            unit = Index.create().parse(each["file"], [*arguments, "-isystem", "/usr/lib/llvm-22/include", "-fno-rtti"])
            every += mutants.found_in(unit, SOURCE, {name})
        return every

    def compile(self, name: str) -> Path:
        """Leaves out mutants of lines that do not compile."""
        mutated, out = self.folder / name.replace("/", "_"), self.folder / f"{Path(name).stem}.o"
        command = self.commands[name].replace(f"-c {SOURCE / name}", f"-c {mutated}")
        command = re.sub(r"-o \S+\.o", f"-o {out}", re.sub(r"-MF \S+", f"-MF {out}.d", command))
        command += f" -I{Path(__file__).parent} -I{(SOURCE / name).parent} -Wno-everything -Wno-narrowing"
        text = (SOURCE / name).read_bytes()
        while True:
            mine = [(number, m) for number, m in self.drawn.items() if m.file == name]
            planted = mutants.planted(text, mine)
            mutated.write_text(f'#include "mutants.h"\n#line 1 "{SOURCE / name}"\n{planted}')
            done = subprocess.run(command, shell=True, cwd=self.build, capture_output=True, text=True, check=False)  # noqa: S602
            if done.returncode == 0:
                return out
            lines = set(map(int, re.findall(rf"{SOURCE / name}:(\d+):\d+: (?:fatal )?(?:error|note)", done.stderr)))
            gone = [number for number, m in mine if text[: m.begin].count(b"\n") + 1 in lines]
            if not gone:
                sys.exit(done.stderr[-4000:])
            for number in gone:
                del self.drawn[number]

    def link(self) -> None:
        (self.folder / "chosen.cpp").write_text(CHOSEN)
        objects = [self.compile(name) for name in self.commands]
        for source in (self.folder / "chosen.cpp", Path(__file__).parent / "chosen.cpp"):
            objects.append(self.folder / f"{source.parent.name}_chosen.o")
            words = ["clang++-22", "-std=c++20", f"-I{SOURCE}/test/Cuda/Simt", f"-I{Path(__file__).parent}"]
            subprocess.run([*words, "-c", source, "-o", objects[-1]], check=True)
        for place in ("bin", "test"):
            (self.folder / place).mkdir()
        for path in self.build.iterdir():
            if path.name not in ("bin", "test"):
                (self.folder / path.name).symlink_to(path)
        for path in (self.build / "bin").iterdir():
            if path.name not in PROGRAMS:
                (self.folder / "bin" / path.name).symlink_to(path)
        for program in PROGRAMS:
            command = ninja(self.build, "commands", program).strip().splitlines()[-1]
            out = self.folder / "bin" / f"{program}.mutants"
            command = command.replace(f"-o bin/{program}", f"{' '.join(map(str, objects))} -o {out}")
            subprocess.run(command, shell=True, cwd=self.build, check=True)  # noqa: S602
            script = self.folder / "bin" / program  # tests do not pass the environment on
            script.write_text(f'#!/bin/sh\nMUTANT=$(cat {self.folder}/mutant) exec {out} "$@"\n')
            script.chmod(0o755)
        site = (self.build / "test/lit.site.cfg.py").read_text()
        (self.folder / "test/lit.site.cfg.py").write_text(
            re.sub(r'(genrec_build_dir = r").*"', rf'\1{self.folder}"', site)
        )

    def choose(self, number: int) -> None:
        (self.folder / "mutant").write_text(str(number))

    def emitted(self, model: Path) -> tuple[int, bytes]:
        words = [self.folder / "bin/genrec-compile", model, "--target=cuda", "--emit=cpp", "-o", "-"]
        done = subprocess.run(words, capture_output=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def passes(self, *words: object) -> bool:
        cache = self.folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        variables = {"GENREC_CACHE": str(cache), "GENREC_BUILD_DIR": str(self.folder)}
        try:
            done = subprocess.run(
                [str(word) for word in words], cwd=self.folder, env=os.environ | variables, capture_output=True,
                timeout=900, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def seen_by(self, seeds: list[int]) -> str:
        """`seeds`: those of random models whose kernels are others."""
        lit = ("/usr/lib/llvm-22/bin/lit", "-q", "--max-failures", 1, "--filter", LIT, self.folder / "test")
        if not self.passes(sys.executable, *lit):
            return "lit"
        share, drivers = self.build / "share/genrec/toolchain.json", self.build / "bin/model-driver-emulated"
        fuzz = (self.folder / "bin/genrec-fuzz", "--no-shrink", "--target=cuda-emulated", f"--toolchain={share}")
        for seed in seeds[:MOST_SEEDS]:
            if not self.passes(*fuzz, f"--driver={drivers}", "--seeds", f"{seed}..{seed}"):
                return "genrec-fuzz"
        tests = SOURCE / "test/EndToEnd/test_cuda_kernels.py"
        kernels = (
            "-m",
            "pytest",
            "-q",
            "-x",
            "-p",
            "no:cacheprovider",
            "-k",
            "row_kernels or pools or optimizer",
            tests,
        )
        return "" if self.passes(sys.executable, *kernels) else "row kernels"


def corpus(build: Path, folder: Path) -> dict[Path, int]:
    """Models, and the seeds of those that are random; 0: of none. Tests' own come first."""
    models = dict.fromkeys(sorted((SOURCE / "test/EndToEnd/Inputs").glob("*.mlir")), 0)
    for name in example_models.MODELS:
        (folder / name).mkdir()
        models[Path(example_models.write_example(name, folder / name))] = 0
    for seed in CI_SEEDS:
        path = folder / f"seed{seed}.mlir"
        words = [build / "bin/genrec-fuzz", "--print", "--seeds", f"{seed}..{seed}"]
        path.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
        models[path] = seed
    return models


def changed(compiler: Compiler, known: dict[Path, tuple[int, tuple[int, bytes]]], number: int) -> list[int] | None:
    """The seeds of models that are compiled to another text; none where the compiler does not end as it should."""
    seeds = []
    for model in random.Random(number).sample(list(known), len(known)):  # noqa: S311 -- no secret
        seed, (status, text) = known[model]
        found_status, found_text = compiler.emitted(model)
        if found_status != status:
            return None
        if found_text != text:
            seeds.append(seed)
    return sorted(seeds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--only", default="", help="a regular expression that files' names hold")
    parser.add_argument("--build", type=Path, default=SOURCE / "build")
    options = parser.parse_args()
    folder = options.build / "compiler-mutants"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    compiler = Compiler(options.build, folder)
    every = compiler.find(options.only)
    compiler.drawn = dict(enumerate(mutants.sampled(every, options.count, options.seed), 1))
    compiler.link()
    print(f"{len(every)} mutants, {len(compiler.drawn)} drawn that compile", flush=True)
    compiler.choose(0)
    known = {model: (seed, compiler.emitted(model)) for model, seed in corpus(options.build, folder).items()}
    by, survivors = Counter[str](), []
    for number, m in compiler.drawn.items():
        compiler.choose(number)
        seeds = changed(compiler, known, number)
        if seeds == []:
            by["no text"] += 1
            continue
        seen = compiler.seen_by([seed for seed in seeds if seed]) if seeds else "the compiler's end"
        by[seen or "nobody"] += 1
        if not seen:
            line = (SOURCE / m.file).read_bytes()[: m.begin].count(b"\n") + 1
            survivors.append({"number": number, "line": line, **asdict(m)})
            print(f"not seen: {m.file}:{line} {m.kind}", flush=True)
            (folder / "compiler_survivors.json").write_text(json.dumps(survivors, indent=1))
    print(
        ", ".join(f"{count} by {who}" if who != "no text" else f"{count} change no text" for who, count in by.items())
    )


if __name__ == "__main__":
    main()
