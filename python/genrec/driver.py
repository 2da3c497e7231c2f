"""Runs a compiled binary and follows its events, one JSON object per line, with a progress bar."""

import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

from genrec.errors import RunError
from genrec.launcher import told_by_ranks
from genrec.run import shown_value

LINE_EVERY_SECONDS = 15.0
BAR_WIDTH = 16


# What a binary that this process started is given to end, before it is killed.
END_SECONDS = 10.0
# The longest that a signal waits while a binary says nothing.
SIGNAL_SECONDS = 0.1
READ_BYTES = 1 << 16


def drive(command: list[str], progress: bool | None = None, launcher: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Runs `command` to its end and returns its events but the steps, of which only the last is kept.

    `progress`: None shows it on a terminal as a bar and elsewhere as lines; False shows nothing. `launcher`: words
    before the command that start it on several ranks. Where this is the main thread, Ctrl-C, SIGTERM and SIGHUP are
    handed to the binary, which saves a checkpoint, and then raised. A second one ends the binary at once, a third one
    kills it. Raises `RunError` with the binary's message where it fails.
    """
    display = _Display(progress is not False)
    events: list[dict[str, Any]] = []
    # mpirun ends all ranks soon after a SIGINT of its own; SIGUSR1 it hands to them, who agree and save.
    stop = signal.SIGUSR1 if launcher else signal.SIGINT
    with tempfile.TemporaryFile("w+") as errors, _HandedOn(stop) as handed_on:
        try:
            # In a session of its own, so that a terminal's Ctrl-C reaches it once, from here.
            process = subprocess.Popen(
                [*launcher, *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        except OSError as error:
            raise cannot_run(command, error) from error
        try:
            handed_on.to(process)
            for line in _lines(process):
                _follow(line, events, display)
            status = process.wait()
        finally:
            display.close()
            _end(process)
        errors.seek(0)
        text = errors.read().strip()
    if status != 0:
        raise RunError(_failure(told_by_ranks(text) if launcher else text, events, status, command), status)
    if text:
        print(text, file=sys.stderr)
    return events


def _lines(process: "subprocess.Popen[bytes]") -> Iterator[str]:
    """The lines that a process prints, as they come, without their ends.

    Python runs signal handlers between two calls of the system. A signal just before a read waits until the read ends,
    and until another line comes that may be long: so no call here is long.
    """
    assert process.stdout is not None
    descriptor, kept = process.stdout.fileno(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(descriptor, selectors.EVENT_READ)
        while True:
            if not selector.select(SIGNAL_SECONDS):
                continue
            if not (read := os.read(descriptor, READ_BYTES)):
                break
            *lines, kept = (kept + read).split(b"\n")
            for line in lines:
                yield line.decode(errors="replace")
    if kept:
        yield kept.decode(errors="replace")


class _HandedOn:
    """While it is entered, Ctrl-C, SIGTERM and SIGHUP are handed to a process as `stop`; they are raised again on
    leaving. What comes before there is a process waits for it.
    """

    def __init__(self, stop: signal.Signals) -> None:
        self.stop = stop
        self.process: subprocess.Popen[bytes] | None = None
        self.caught: list[int] = []
        self.sent = 0  # of these
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "_HandedOn":
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                # Ignored (nohup), or handled outside of Python: stays so.
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    self.before[number] = signal.signal(number, self._hand_on)
        return self

    def to(self, process: "subprocess.Popen[bytes]") -> None:
        """The process that gets them from now on."""
        self.process = process
        if self.sent < len(self.caught):
            self._send()

    def _hand_on(self, number: int, _: Any) -> None:
        self.caught.append(number)
        self._send()

    def _send(self) -> None:
        if self.process is None:
            return
        self.sent = len(self.caught)
        if self.sent == 1:
            self.process.send_signal(self.stop)
        elif self.sent == 2:
            self.process.terminate()
        else:
            self.process.kill()

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)
        if self.caught:
            signal.raise_signal(self.caught[-1])


def _end(process: "subprocess.Popen[bytes]") -> None:
    """Ends a process that still runs. mpirun needs a moment to end its ranks."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def cannot_run(command: list[str], error: OSError) -> RunError:
    """The error of a binary that could not be started."""
    help = "make one: gr.compile(model, schema, output=...)"
    if command[0].endswith(".genrec"):
        help = f"it is a model file; the binary is made of it: genrec-compile {command[0]} -o {command[0][:-7]}"
    if os.path.isdir(command[0]):
        return RunError(f"{command[0]} is a folder\n  help: name the binary in it, or {help}", 127)
    return RunError(f"{command[0]} is no compiled model: {error.strerror}\n  help: {help}", 127)


def _follow(line: str, events: list[dict[str, Any]], display: "_Display") -> None:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    if not isinstance(event, dict) or "event" not in event:
        # Not an event of the binary: a library's message, say.
        display.line(line)
        return
    if event["event"] == "step" and events and events[-1]["event"] == "step":
        events[-1] = event
    else:
        events.append(event)
    display.show(event)


def _failure(text: str, events: list[dict[str, Any]], status: int, command: list[str]) -> str:
    """The message of a failed run: its error output, else its last message event."""
    if text:
        return text
    messages = [event["text"] for event in events if event["event"] == "message"]
    if messages:
        return str(messages[-1])
    reason = f"was killed by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"{command[0]} {command[1]} {reason} and said nothing"


class _Display:
    """Progress on standard output: one line redrawn on a terminal, lines now and then elsewhere."""

    def __init__(self, enabled: bool) -> None:
        self.enabled = enabled
        self.is_terminal = sys.stdout.isatty()
        self.drawn = False
        self.last_line = time.monotonic()
        self.metric = ""

    def show(self, event: dict[str, Any]) -> None:
        kind = event["event"]
        if kind == "step":
            self._step(event)
        elif kind == "epoch":
            loss = shown_value(event, "loss", event.get("loss"))
            self.line(f"epoch {event['epoch']}  loss {loss}  {_speed(event)}".rstrip())
        elif kind == "evaluation":
            self._evaluation(event)
        elif kind == "message":
            self.line(str(event["text"]))

    def _step(self, event: dict[str, Any]) -> None:
        phase = str(event.get("phase", "train"))
        title = f"epoch {event['epoch']}/{event['epochs']}" if phase == "train" and event.get("epochs") else phase
        mean = event.get("mean_loss")
        loss = "" if phase == "predict" else f"  loss {'no rows' if mean is None else f'{mean:.4f}'}"
        total, done = event.get("total_rows") or 0, event.get("rows") or 0
        text = f"{loss}  {_speed(event)}{self.metric}"
        if self.is_terminal and self.enabled:
            bar = _bar(done / total if total else 0.0)
            print(f"\r\033[K{title} {bar}{text}{_eta(event, total - done)}", end="", flush=True)
            self.drawn = True
        elif time.monotonic() - self.last_line > LINE_EVERY_SECONDS:
            self.line(f"{title}  {done:,} of {total:,} rows{text}")

    def _evaluation(self, event: dict[str, Any]) -> None:
        metrics = [f"{name} {shown_value(event, name, value)}" for name, value in event.get("metrics", {}).items()]
        loss = [f"loss {shown_value(event, 'loss', event['loss'])}"] if "loss" in event else []
        # If one of several losses has no rows, nothing else shows it.
        losses = event.get("losses", {})
        loss += [f"({name}: no rows)" for name in event.get("no_rows", ()) if name in losses and len(losses) > 1]
        self.line("evaluation  " + "  ".join(loss + metrics))
        # The bar has room for one metric.
        self.metric = f"  {metrics[0]}" if metrics else ""

    def line(self, text: str) -> None:
        if not self.enabled:
            return
        self._clear()
        print(text, flush=True)
        self.last_line = time.monotonic()

    def close(self) -> None:
        self._clear()

    def _clear(self) -> None:
        if self.drawn:
            print("\r\033[K", end="", flush=True)
        self.drawn = False


def _speed(event: dict[str, Any]) -> str:
    speed = event.get("rows_per_second") or 0
    return f"{speed:,.0f} rows/s" if speed else ""


def _eta(event: dict[str, Any], rows: int) -> str:
    speed = event.get("rows_per_second") or 0
    if not speed:
        return ""
    minutes, seconds = divmod(int(rows / speed), 60)
    return f"  eta {minutes}:{seconds:02}"


def _bar(fraction: float) -> str:
    """A bar in eighths of a character."""
    eighths = round(min(max(fraction, 0.0), 1.0) * BAR_WIDTH * 8)
    full, part = divmod(eighths, 8)
    return ("█" * full + (" ▏▎▍▌▋▊▉"[part] if part else "")).ljust(BAR_WIDTH)
