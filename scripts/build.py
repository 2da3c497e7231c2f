"""Configures a CMake preset and builds it, with a progress bar on a terminal and plain lines elsewhere.

Usage: build/venv/bin/python scripts/build.py [--preset release] [target ...]
"""

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRESS = re.compile(r"^\[(\d+)/(\d+)\] ")
PLAIN_LINE_EVERY_SECONDS = 15.0
BAR_WIDTH = 24


def binary_folder(preset: str) -> Path:
    """The build folder that CMakePresets.json gives to `preset`."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    for entry in presets:
        if entry["name"] == preset and not entry.get("hidden"):
            return Path(entry["binaryDir"].replace("${sourceDir}", str(ROOT)))
    names = ", ".join(entry["name"] for entry in presets if not entry.get("hidden"))
    sys.exit(f"[build]   error: there is no preset '{preset}'; there are {names}")


def duration(seconds: float) -> str:
    """`seconds` as people write it: 0.4 s, 52 s, 3 min 10 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def configure(preset: str, folder: Path) -> None:
    """Runs CMake where it has not run yet, or where the presets changed since; later changes Ninja notices itself."""
    digest = hashlib.sha256((ROOT / "CMakePresets.json").read_bytes()).hexdigest()
    stamp = folder / ".configured"
    if (folder / "build.ninja").exists() and stamp.exists() and stamp.read_text() == digest:
        return
    result = subprocess.run(
        ["cmake", "--preset", preset],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if result.returncode != 0:
        sys.stderr.write(result.stdout)
        sys.exit(f"[build]   error: cmake --preset {preset} failed; its messages are above")
    stamp.write_text(digest)


class Progress:
    """Shows how far a build is: one line redrawn on a terminal, a line now and then elsewhere."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.terminal = sys.stdout.isatty()
        self.begin = time.monotonic()
        self.last_line = self.begin
        self.total = 0

    def step(self, done: int, total: int) -> None:
        """Called when `done` of `total` steps are finished."""
        self.total = total
        now = time.monotonic()
        if self.terminal:
            filled = BAR_WIDTH * done // max(total, 1)
            bar = "█" * filled + "░" * (BAR_WIDTH - filled)
            print(f"\r[build]   {self.title} {bar} {done}/{total}", end="", flush=True)
        elif now - self.last_line >= PLAIN_LINE_EVERY_SECONDS:
            self.last_line = now
            print(f"[build]   {self.title}: {done}/{total}", flush=True)

    def finish(self, words: str) -> None:
        """Replaces the progress line by the last one."""
        clear = "\r\033[K" if self.terminal and self.total else ""
        spent = duration(time.monotonic() - self.begin)
        print(f"{clear}[build]   {self.title} … {words} ({spent})", flush=True)


def ninja(folder: Path, targets: list[str]) -> int:
    """Builds `targets` (all where empty); prints what failing commands said. Returns Ninja's exit status."""
    progress = Progress("compiler and runtime")
    environment = dict(os.environ, NINJA_STATUS="[%f/%t] ")
    if not progress.terminal:
        environment["TERM"] = "dumb"
    process = subprocess.Popen(
        ["ninja", "-C", str(folder), *targets],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    )
    assert process.stdout is not None
    said, work, failed = [], False, False
    try:
        for line in process.stdout:
            match = PROGRESS.match(line)
            if "Re-checking globbed directories" in line:
                continue
            if match:
                progress.step(int(match[1]), int(match[2]))
                work, failed = True, False
            elif line.startswith("FAILED: ") or failed or not line.startswith("ninja: "):
                failed = failed or line.startswith("FAILED: ")
                said.append(line)
        status = process.wait()
    except KeyboardInterrupt:
        process.wait()
        print("\n[build]   interrupted; repeat the command to go on", file=sys.stderr)
        return 130
    if status:
        sys.stderr.write(("\n" if progress.terminal else "") + "".join(said))
        progress.finish("failed")
    else:
        progress.finish(f"{progress.total} steps done" if work else "up to date")
    return status


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description="configures a CMake preset and builds it")
    parser.add_argument("--preset", default="release", help="a preset of CMakePresets.json (default: release)")
    parser.add_argument("targets", nargs="*", help="what to build (default: everything)")
    arguments = parser.parse_args()
    folder = binary_folder(arguments.preset)
    try:
        configure(arguments.preset, folder)
    except KeyboardInterrupt:
        print("\n[build]   interrupted; repeat the command to go on", file=sys.stderr)
        return 130
    return ninja(folder, arguments.targets)


if __name__ == "__main__":
    sys.exit(main())
