"""Mutants of CUDA code (test/Cuda/Mutants) change what they say, and nothing where none is chosen."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "Cuda/Mutants"
sys.path += [str(FOLDER), "/usr/lib/python3/dist-packages"]  # where Debian has clang.cindex
mutants = importlib.import_module("mutants")

PROGRAM = """
#include <algorithm>
#include <cstdio>

template <typename T>
T summed(const T *values, int count) {
  T sum = 0;
  for (int i = 0; i < count; ++i)
    if (values[i] > 1 && values[i] <= 4)
      sum += 2 * values[i] + 1;
  return std::min(sum, T(100));
}

constexpr int kCount = 3 + 2;

int main() {
  const int values[kCount] = {1, 2, 3, 4, 5};
  std::printf("%d", summed(values, kCount) << 1);
}
"""
BITS = """
#include <cstdio>
#define CHECKED(...) do { __VA_ARGS__; } while (false)

void set(int &to) { to = 6; }

int main() {
  int value = 0;
  CHECKED(set(value));
  value += 7 % 4;
  std::printf("%d %d %d", value, value & 3, value | 2);
}
"""
CHOSEN = """
#include <cstdlib>
bool simt::isChosen(int mutant) { return mutant == std::atoi(std::getenv("MUTANT")); }
"""


def test_what_lies_in_each_other_is_written_inside_out() -> None:
    def of(begin: int, end: int, name: str) -> object:
        return mutants.Mutant("", begin, end, "", f"{name}{{}}(", ")")

    text = b"a + b * c;"
    drawn = [(1, of(0, 9, "x")), (2, of(4, 9, "y")), (3, of(8, 9, "z")), (4, of(4, 9, "w")), (5, of(5, 10, "crosses"))]
    assert mutants.planted(text, drawn) == "x1(a + y2(w4(b * z3(c))));"


def results(tmp_path: Path, text: str = PROGRAM) -> dict[str, list[str]]:
    """What the program prints with each mutant, by kind; `right` without."""
    cindex = pytest.importorskip("clang.cindex")
    if not cindex.Config.loaded:
        cindex.Config.set_library_path("/usr/lib/llvm-22/lib")
    file = tmp_path / "program.cpp"
    file.write_text(text)
    unit = cindex.Index.create().parse(str(file), ["-std=c++20"])
    found = dict(enumerate(mutants.found_in(unit, tmp_path, {"program.cpp"}), 1))
    changed = tmp_path / "changed.cpp"
    changed.write_text(f'#include "mutants.h"\n{mutants.planted(file.read_bytes(), list(found.items()))}{CHOSEN}')
    program = tmp_path / "program"
    subprocess.run(["clang++-22", "-std=c++20", "-w", f"-I{FOLDER}", changed, "-o", program], check=True)
    out: dict[str, list[str]] = {}
    for number, kind in [(0, "right"), *((number, mutant.kind) for number, mutant in found.items())]:
        done = subprocess.run([program], env={"MUTANT": str(number)}, capture_output=True, text=True, check=False)
        out.setdefault(kind, []).append(done.stdout)
    return out


def test_each_changes_what_it_says(tmp_path: Path) -> None:
    printed = results(tmp_path)
    assert printed["right"] == ["42"]  # 2 * (5 + 7 + 9)
    for kind, expected in {
        "> is >=": "48",
        "<= is <": "24",
        "no left of &&": "48",
        "no right of &&": "64",
        "always": "70",
        "never": "0",
        "no left of *": "24",
        "no factor of *": "18",
        "no term of +": "36",
        "no left of +": "6",
        "T(100) alone": "200",
        "no term of <<": "21",
    }.items():
        assert printed[kind] == [expected], kind
    assert printed["sum alone"] == ["42"]
    assert set(printed["no statement"]) == {"0", ""}
    assert "44" in printed["one more"]  # `sum` begins at 1


def test_bits_sums_and_macros_change_as_they_say(tmp_path: Path) -> None:
    printed = results(tmp_path, BITS)
    assert printed["right"] == ["9 1 11"]
    for kind, expected in {
        "no right of %": "13 1 15",
        "no right of &": "9 9 11",
        "no right of |": "9 1 9",
        "no left of |": "9 1 2",
        "+= is =": "3 3 3",
    }.items():
        assert printed[kind] == [expected], kind
    assert sorted(printed["no statement"]) == ["", "3 3 3", "3 3 3", "6 2 6"]  # `set` has one, too
