"""The peer's side: one process of peer.py per mode, kept alive so that it is warm when its turn comes."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from prepare import Sequences


class Peer:
    """A process that takes training steps on request.

    `mode` is "eager" or "compile" (torch.compile). A peer that fails is left out with its message, `failure`; the
    benchmark says so.
    """

    def __init__(self, python: str, checkout: Path, sequences: Sequences, mode: str, batch: int, threads: int) -> None:
        self.mode = mode
        self.failure = ""
        command = [
            python, str(Path(__file__).with_name("peer.py")), "--checkout", str(checkout), "--data",
            str(sequences.arrays), "--batch", str(batch), "--threads", str(threads), "--position-bias-only", "--serve",
            *(["--compile"] if mode == "compile" else []),
        ]  # fmt: skip
        self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 (as long as the process)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )
        self._answer()

    def _answer(self) -> dict[str, list[float]]:
        """The next JSON line; what else the peer prints is passed over."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        status = self._process.wait()
        self._errors.seek(0)
        self.failure = self._errors.read().strip()[-2000:] or f"exit status {status}"
        return {}

    def steps(self, begin: int, count: int) -> list[float]:
        """Seconds of the steps [begin, begin + count); empty where the peer failed."""
        if self.failure:
            return []
        assert self._process.stdin is not None
        self._process.stdin.write(f"steps {begin} {count}\n")
        self._process.stdin.flush()
        return self._answer().get("seconds", [])

    def close(self) -> None:
        """Ends the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def version(python: str) -> str:
    """The version of PyTorch that `python` has. Raises SystemExit where it has none."""
    result = subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True)
    if result.returncode:
        sys.exit(f"hstu_train: error: {python} has no PyTorch; make bench PEER=… installs it, or pass --peer-python")
    return result.stdout.strip()
