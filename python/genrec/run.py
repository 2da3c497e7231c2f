"""The results of a training run."""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any


def shown_value(record: Mapping[str, Any], name: str, value: float | None) -> str:
    """A value of an epoch's or evaluation's record as text: "no rows" if no row counted."""
    if value is not None:
        return f"{value:.4f}"
    return "no rows" if name in record.get("no_rows", ()) else "undefined"


class Run:
    """A finished training run.

    `history` holds a record per epoch ("epoch", "step", "loss", "losses", "rows_per_second", and "evaluation" where the
    epoch was evaluated), `metrics` the last evaluation's metrics, `timings` durations, `checkpoint` the folder that was
    saved to. With `eval_before_train`, `before` holds the evaluation of each file that was made before training on it
    ("before": the file, "metrics", "step").

    Example:
        >>> [record["epoch"] for record in run.history]
        [1, 2]
        >>> run.loss == run.history[-1]["loss"]
        True
        >>> list(run.metrics), run.stopped_early
        (['auc'], False)
        >>> run.best, run.best_checkpoint, run.profile  # of runs with patience and profile
        (None, None, None)
    """

    def __init__(self, events: list[dict[str, Any]], checkpoint: Path | None) -> None:
        self.events = events
        self.checkpoint = checkpoint
        self.history: list[dict[str, Any]] = []
        self.before: list[dict[str, Any]] = []
        for event in events:
            record = {key: value for key, value in event.items() if key != "event"}
            if event["event"] == "epoch":
                self.history.append(record)
            elif event["event"] == "evaluation" and "before" in record:
                self.before.append(record)
            elif event["event"] == "evaluation" and self.history:
                self.history[-1]["evaluation"] = record
        done = events[-1] if events and events[-1]["event"] == "done" else {}
        self.final: dict[str, Any] = done.get("final", {})
        self.timings: dict[str, float] = done.get("timings", {})

    def __repr__(self) -> str:
        evaluation = self.final.get("evaluation", {})
        metrics = "".join(f", {name} {shown_value(evaluation, name, value)}" for name, value in self.metrics.items())
        return f"<run of {len(self.history)} epochs, loss {self.loss}{metrics}>"

    @property
    def loss(self) -> float | None:
        """The mean training loss of the last epoch; None where no epoch was finished, or no row counted."""
        return self.final.get("loss")

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metrics of the last evaluation by name, such as "hr@10"; empty where nothing was evaluated. A metric
        that no row counted for ("no rows") or that is undefined (an AUC of one class) is None.
        """
        return dict(self.final.get("evaluation", {}).get("metrics", {}))

    @property
    def init(self) -> dict[str, Any] | None:
        """With `init`: "filled", a record per table and parameter ("name", "kind", "rows", "from"); "not_filled", the
        names of those with their usual initial values; "unused", tensors of the sources that the model does not have.
        None without `init`.

        Example:
            >>> run.init is None
            True
        """
        event = next((event for event in self.events if event["event"] == "init"), None)
        return None if event is None else {key: value for key, value in event.items() if key != "event"}

    @property
    def stopped_early(self) -> bool:
        """Whether `patience` ended the run."""
        return bool(self.final.get("stopped_early", False))

    @property
    def best(self) -> dict[str, Any] | None:
        """With `patience`: epoch, step and value of the best evaluation; its state is in `best_checkpoint`."""
        return self.final.get("best")

    @property
    def best_checkpoint(self) -> Path | None:
        """With `patience`: where the state of the best evaluation was saved."""
        return self.checkpoint / "best" if self.checkpoint is not None and self.best is not None else None

    @property
    def profile(self) -> dict[str, Any] | None:
        """With `profile`: milliseconds per step by phase, and per op its time, work and lower bound; the folder also
        has the trace, trace.json.
        """
        folder = next((event["folder"] for event in self.events if event["event"] == "profile"), None)
        return None if folder is None else json.loads((Path(folder) / "profile.json").read_text())

    def curve(self, name: str) -> tuple[list[int], list[float]]:
        """Epochs and values of "loss", or of a metric in the epochs that were evaluated.

        Example:
            >>> epochs, losses = run.curve("loss")
            >>> epochs
            [1, 2]
        """
        epochs, values = [], []
        for record in self.history:
            holder = record if name == "loss" else record.get("evaluation", {}).get("metrics", {})
            value = holder.get(name)
            if value is not None:
                epochs.append(int(record["epoch"]))
                values.append(float(value))
        return epochs, values

    def plot(
        self,
        path: str | PathLike[str] | None = None,
        metric: str | None = None,
        references: Mapping[str, float | None] | None = None,
    ) -> Any:
        """Draws the learning curve: training loss and one metric (the first unless given) by epoch, with horizontal
        lines for `references` of the metric. Writes it to `path` where given; returns the matplotlib figure.

        Raises `ImportError` with the remedy where matplotlib is missing, and `KeyError` for a metric that the run does
        not have.

        Example:
            >>> figure = run.plot("curve.png", metric="auc", references={"popularity": 0.6})
        """
        try:
            from matplotlib.figure import Figure
        except ImportError as error:
            raise ImportError("plot needs matplotlib: pip install matplotlib") from error
        if metric is not None and metric not in self.metrics:
            raise KeyError(f"the run has no metric '{metric}'; it has {', '.join(self.metrics) or 'none'}")
        shown = metric or next(iter(self.metrics), None)
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        axes.plot(*self.curve("loss"), color="tab:gray", label="training loss")
        axes.set_xlabel("epoch")
        axes.set_ylabel("loss")
        handles, labels = axes.get_legend_handles_labels()
        if shown is not None:
            right = axes.twinx()
            right.plot(*self.curve(shown), color="tab:blue", marker="o", markersize=3, label=shown.upper())
            for style, (name, value) in zip(("--", ":", "-.") * 9, (references or {}).items(), strict=False):
                if value is not None:
                    right.axhline(value, color="tab:green", linestyle=style, linewidth=1, label=name)
            right.set_ylabel(shown.upper())
            right.set_ylim(bottom=0)
            more, texts = right.get_legend_handles_labels()
            handles, labels = handles + more, labels + texts
        axes.legend(handles, labels, loc="center right", frameon=False)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure
