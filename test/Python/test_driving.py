"""The handle of a compiled model, against stand-ins for the binary."""

import json
import os
import signal
import subprocess
import sys
import textwrap

import genrec as gr
import numpy as np
import pytest
from genrec import driver, launcher
from genrec.warm_start import init_entries
from stand_ins import write_program

STEP = {
    "event": "step", "phase": "train", "epoch": 1, "epochs": 2, "step": 7, "rows": 30, "total_rows": 60, "loss": 2.5,
    "mean_loss": 2.75, "learning_rate": 0.1, "rows_per_second": 1234.5,
}  # fmt: skip
EVALUATION = {"event": "evaluation", "loss": 2.0, "metrics": {"hr@10": 0.25, "mrr": None}, "epoch": 2, "step": 20}
EVENTS = [
    {"event": "message", "text": "resuming at step 3"},
    STEP,
    {**STEP, "step": 8},
    {"event": "epoch", "epoch": 1, "step": 10, "loss": 2.6, "rows_per_second": 1000.0},
    {"event": "epoch", "epoch": 2, "step": 20, "loss": 2.25, "rows_per_second": 1100.0},
    EVALUATION,
    {
        "event": "done",
        "final": {"loss": 2.25, "epoch": 2, "evaluation": {"metrics": EVALUATION["metrics"]}},
        "timings": {"total_seconds": 1.5},
    },
]


@pytest.fixture
def model(tmp_path):
    """A compiled model that keeps the flags it was given and plays the events."""
    return gr.CompiledModel(
        write_program(
            tmp_path / "model",
            f"""
            if sys.argv[1] == "info":
                print(json.dumps(dict(tables=[dict(name="item")], parameters=[])))
                sys.exit()
            json.dump(sys.argv[1:], open({str(tmp_path / "flags.json")!r}, "w"))
            for event in json.loads({json.dumps(EVENTS)!r}):
                print(json.dumps(event), flush=True)
            """,
        )
    )


def flags_of(model):
    return json.loads((model.binary.parent / "flags.json").read_text())


def test_train_gives_flags_and_reads_events(model, tmp_path, capsys):
    run = model.train(
        tmp_path / "a.parquet", validation=["v.parquet", "w.parquet"], epochs=2, batch=16, lr=1e-5, seed=3,
        eval_epochs=[1, 2], shuffle=False, check_finite=True, resume=False, catalogues={"items": "i.parquet"},
    )  # fmt: skip
    assert flags_of(model) == [
        "train", "--progress", "json", "--data", str(tmp_path / "a.parquet"), "--validation", "v.parquet", "--validation",
        "w.parquet", "--epochs", "2", "--batch", "16", "--seed", "3", "--lr", "1e-05", "--checkpoint", f"{model.binary}.checkpoint",
        "--eval-epochs", "1,2", "--no-shuffle", "--check-finite", "--catalogue", "items=i.parquet",
    ]  # fmt: skip
    assert run.metrics == {"hr@10": 0.25, "mrr": None} and run.loss == 2.25
    assert [record["epoch"] for record in run.history] == [1, 2]
    assert run.history[1]["evaluation"]["metrics"] == run.metrics
    assert run.timings == {"total_seconds": 1.5} and run.checkpoint == model.checkpoint
    assert [event["step"] for event in run.events if event["event"] == "step"] == [8]
    assert repr(run) == "<run of 2 epochs, loss 2.25, hr@10 0.2500, mrr undefined>"
    assert capsys.readouterr().out.splitlines() == [
        "resuming at step 3",
        "epoch 1  loss 2.6000  1,000 rows/s",
        "epoch 2  loss 2.2500  1,100 rows/s",
        "evaluation  loss 2.0000  hr@10 0.2500  mrr undefined",
    ]


def test_the_handle_remembers_where_it_trained(model, tmp_path, monkeypatch):
    default = f"{model.binary}.checkpoint"
    model.evaluate("v.parquet", progress=False)
    assert flags_of(model)[-1] == default
    monkeypatch.chdir(tmp_path)
    run = model.train("a.parquet", checkpoint="ck", progress=False)
    assert str(run.checkpoint) == "ck" and model.checkpoint == tmp_path / "ck"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    for call in (lambda: model.evaluate("v"), lambda: model.predict("v", "o"), lambda: model.export("o")):
        call()
        flags = flags_of(model)
        assert flags[flags.index("--checkpoint") + 1] == str(tmp_path / "ck")
    model.evaluate("v.parquet", checkpoint="other")
    assert flags_of(model)[-1] == "other"
    model.evaluate("v.parquet", checkpoint="")  # no default: the binary refuses it
    assert flags_of(model)[-1] == ""
    with pytest.raises(ValueError, match="'checkpoint' is an empty text; name a folder, or False"):
        model.train("a.parquet", checkpoint="")
    model.train("a.parquet", checkpoint=False, progress=False)
    assert model.checkpoint == tmp_path / "ck"
    model.train("a.parquet", progress=False)
    assert str(model.checkpoint) == default


def test_a_run_that_failed_is_remembered_where_it_saved(model, tmp_path):
    write_program(model.binary, "sys.exit(1)")
    for folder, is_saved in (("none", False), ("saved", True)):
        (tmp_path / folder).mkdir()
        if is_saved:
            (tmp_path / folder / "manifest.json").write_text("{}")
        with pytest.raises(gr.RunError):
            model.train("a.parquet", checkpoint=tmp_path / folder)
        assert (model.checkpoint == tmp_path / folder) == is_saved


def test_init_gives_entries(tmp_path):
    vectors, ids = np.arange(6, dtype=np.float32).reshape(3, 2), np.array([5, 1, 9])
    source = ["export", {"item": "v.npy", "a": ("old", "b"), "c": ("t.parquet", ["id", "v"]), "d": vectors.T,
                         "e": (ids, vectors)}]  # fmt: skip
    with init_entries(source) as entries:
        assert entries[:4] == ["export", "item=v.npy", "a=old:b", "c=t.parquet:id,v"]
        assert (np.load(entries[4].removeprefix("d=")) == vectors.T).all()
        saved, of = entries[5].removeprefix("e=").split(":")
        assert (np.load(saved) == vectors).all() and (np.load(of) == ids).all()
    assert not os.path.exists(saved)
    with init_entries(None) as entries:
        assert entries == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (3, "init takes a path, or a mapping of names of tables and parameters to paths or arrays"),
        ({"item": None}, "init of 'item' takes a path, .* cannot be made of NoneType"),
        ({"item": ["x"]}, "an array of numbers cannot be made of list"),
        ({"item": ([0.5], [[1.0]])}, r"init of 'item': ids must be one integer per row, got float64 \[1\]"),
    ],
)
def test_what_is_no_init(source, message):
    with pytest.raises(TypeError, match=message), init_entries(source):
        pass


def test_progress_can_be_silent_and_nothing_saved(model, capsys):
    run = model.train("a.parquet", checkpoint=False, progress=False)
    assert capsys.readouterr().out == "" and run.checkpoint is None
    assert "--checkpoint" not in flags_of(model)


def test_bar_on_a_terminal(model, capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    model.train("a.parquet")
    shown = capsys.readouterr().out
    assert "\r\x1b[Kepoch 1/2 ████████          loss 2.7500  1,234 rows/s  eta 0:00\r\x1b[K" in shown


def test_plot(model, tmp_path):
    run = model.train("a.parquet", progress=False)
    figure = run.plot(tmp_path / "curve.png", references={"popularity": 0.1, "unknown": None})
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
    loss, metric = figure.axes
    assert list(loss.lines[0].get_ydata()) == [2.6, 2.25]
    assert list(metric.lines[0].get_xdata()) == [2] and metric.lines[1].get_label() == "popularity"
    assert len(metric.lines) == 2
    with pytest.raises(KeyError, match="the run has no metric 'auc'; it has hr@10, mrr"):
        run.plot(metric="auc")


def test_other_commands(model, tmp_path):
    assert model.evaluate("v.parquet", checkpoint="c") == {"loss": 2.0, "hr@10": 0.25, "mrr": None}
    assert flags_of(model) == ["evaluate", "--progress", "json", "--data", "v.parquet", "--checkpoint", "c"]
    assert model.predict("v.parquet", tmp_path / "out.parquet", keys=["user", "day"]) == tmp_path / "out.parquet"
    assert flags_of(model)[5:9] == ["--out", str(tmp_path / "out.parquet"), "--keys", "user,day"]
    write_program(model.binary, """print('{"event": "done", "files": [{"file": "o/a.safetensors"}]}')""")
    assert [str(path) for path in model.export("o", checkpoint="c")] == ["o/a.safetensors"]
    write_program(model.binary, """print('{"tables": [1], "parameters": [{"shape": [2, 3]}, {"shape": []}]}')""")
    assert model.info()["tables"] == [1]
    assert model.summary() == "1 table, 2 parameters (7 weights)"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("sys.exit('model: error: a.parquet: no such file\\n  help: look again')", 1,
         "model: error: a.parquet: no such file\n  help: look again"),
        ("""print('{"event": "message", "text": "saved step 3"}'); sys.exit(143)""", 143, "saved step 3"),
        ("sys.exit(9)", 9, "{binary} train ended with status 9 and said nothing"),
        ("import os; os.kill(os.getpid(), 9)", -9, "{binary} train was killed by signal 9 and said nothing"),
    ],
)  # fmt: skip
def test_failures(model, body, status, message):
    write_program(model.binary, body)
    with pytest.raises(gr.RunError) as raised:
        model.train("a.parquet")
    assert str(raised.value) == message.format(binary=model.binary)
    assert raised.value.status == status


def test_a_missing_binary(tmp_path):
    with pytest.raises(gr.RunError, match="model: No such file or directory"):
        gr.CompiledModel(tmp_path / "model").train("a.parquet")


def test_other_output_is_passed_on(model, capsys):
    write_program(model.binary, """print("libfoo: hello"); print("[1]"); print("low disk", file=sys.stderr)""")
    assert driver.drive([str(model.binary), "train"]) == []
    captured = capsys.readouterr()
    assert captured.out == "libfoo: hello\n[1]\n" and captured.err == "low disk\n"


# Where tests run in the background, Ctrl-C is ignored, and so it is by what they start.
INTERRUPTIBLE = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
# As a terminal does; and so that no call of the main thread ends early, like a signal just before the call.
TO_THE_GROUP, TO_ANOTHER_THREAD = "os.killpg(0, sent)", "signal.pthread_kill(threading.get_ident(), sent)"


def train_beside(model, interrupt, ranks=None):
    """Trains in a Python program of its own, with a thread that runs the lines of `interrupt`."""
    script = f"""
{INTERRUPTIBLE}
import genrec as gr, os, threading, time
def interrupt():{textwrap.indent(textwrap.dedent(interrupt), "    ")}
threading.Thread(target=interrupt).start()
try:
    gr.CompiledModel({str(model.binary)!r}).train("a.parquet", ranks={ranks})
except KeyboardInterrupt:
    print("interrupted")
"""
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=50, start_new_session=True
    )


@pytest.mark.parametrize(
    ("ranks", "send"),
    [(None, TO_THE_GROUP), (2, TO_THE_GROUP), (None, TO_ANOTHER_THREAD)],
    ids=["one", "ranks", "late"],
)
@pytest.mark.parametrize("sent", ["SIGINT", "SIGTERM"])
def test_interrupting_stops_the_binary(model, mpirun, tmp_path, ranks, sent, send):
    """A signal reaches the binary once, which may save, before the Python program gets it."""
    stop = "SIGUSR1" if ranks else "SIGINT"
    write_program(
        model.binary,
        f"""
        import signal
        def stop(*_):
            signal.signal(signal.{stop}, signal.SIG_DFL)
            time.sleep(0.3)
            print('{{"event": "message", "text": "saved"}}', flush=True)
            sys.exit(130)
        signal.signal(signal.{stop}, stop)
        open({str(tmp_path / "ready")!r}, "w").close()
        time.sleep(60)
        """,
    )
    interrupt = f"""
    while not os.path.exists({str(tmp_path / "ready")!r}):
        time.sleep(0.01)
    sent = signal.{sent}
    {send}
    """
    result = train_beside(model, interrupt, ranks)
    if sent == "SIGINT":
        assert result.stdout.splitlines() == ["saved", "interrupted"], result.stderr
        assert result.returncode == 0
    else:
        assert result.stdout.splitlines() == ["saved"], result.stderr
        assert result.returncode == -signal.SIGTERM


def test_a_third_interrupt_kills_what_ends_by_no_other(model, tmp_path):
    write_program(
        model.binary,
        f"""
        import signal
        heard = open({str(tmp_path / "heard")!r}, "a", buffering=1)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: print(signal.Signals(number).name, file=heard))
        print("ready", file=heard)
        while True:
            time.sleep(60)
        """,
    )
    interrupt = f"""
    heard = {str(tmp_path / "heard")!r}
    for lines in range(1, 4):
        while not os.path.exists(heard) or len(open(heard).readlines()) < lines:
            time.sleep(0.01)
        os.killpg(0, signal.SIGINT)
    """
    result = train_beside(model, interrupt)
    assert (result.stdout, result.returncode) == ("interrupted\n", 0), result.stderr
    assert (tmp_path / "heard").read_text().split() == ["ready", "SIGINT", "SIGTERM"]


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt, whatever it does in the process that runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_interrupting_while_the_binary_starts(model, tmp_path, monkeypatch):
    """What comes before there is a process reaches it then, and no process is left alone."""
    write_program(model.binary, f"time.sleep(60); open({str(tmp_path / 'late')!r}, 'w')")
    started = []

    class Interrupted(subprocess.Popen):
        def __init__(self, *words, **more):
            signal.raise_signal(signal.SIGINT)
            super().__init__(*words, **more)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.train("a.parquet")
    assert started[0].returncode is not None


# -- ranks -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def mpirun(tmp_path, monkeypatch):
    """A stand-in for Open MPI in PATH, which keeps its words and then runs the command once."""
    folder = tmp_path / "mpi"
    folder.mkdir()
    write_program(
        folder / "mpirun",
        f"""
        import os
        if sys.argv[1:] == ["--version"]:
            print("mpirun (Open MPI) 4.1.4")
            sys.exit()
        words = sys.argv[1:]
        command = next(i for i, word in enumerate(words) if word.startswith("/"))
        json.dump(words[:command], open({str(tmp_path / "words.json")!r}, "w"))
        os.execv(words[command], words[command:])
        """,
    )
    for variable in [*launcher._BATCH_JOBS, *launcher._RANKS]:
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return folder / "mpirun"


def machine(monkeypatch, cores, usable=None, user=1000):
    """Pretends to be on a machine of so many cores with one thread each."""
    monkeypatch.setattr(launcher, "_siblings", str)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(usable or cores)))
    monkeypatch.setattr(os, "geteuid", lambda: user)


def test_ranks_are_started_by_mpirun(model, mpirun, tmp_path, monkeypatch):
    machine(monkeypatch, cores=8)
    words = tmp_path / "words.json"
    model.train("a.parquet", ranks=2, portions=12, progress=False)
    assert json.loads(words.read_text()) == ["--map-by", "slot:PE=4", "--bind-to", "core", "-n", "2"]
    assert flags_of(model)[-2:] == ["--portions", "12"]
    model.evaluate("a.parquet", ranks=3, progress=False)
    assert json.loads(words.read_text()) == ["--map-by", "slot:PE=2", "--bind-to", "core", "-n", "3"]
    model.predict("a.parquet", "o.parquet", ranks=9, progress=False)  # more than there are cores
    assert json.loads(words.read_text()) == ["--oversubscribe", "--bind-to", "none", "-n", "9"]
    machine(monkeypatch, cores=8, usable=4)  # mpirun does not know which ones are ours
    assert launcher.launcher_words(2)[1:] == ["--bind-to", "none", "-n", "2"]
    machine(monkeypatch, cores=8, user=0)
    assert launcher.launcher_words(8)[1] == "--allow-run-as-root"
    monkeypatch.setenv("SLURM_JOB_ID", "17")  # mpirun knows the places
    machine(monkeypatch, cores=1)
    assert launcher.launcher_words(64)[1:] == ["-n", "64"]


def test_one_rank_needs_no_launcher(model, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    for ranks in (None, 1):
        assert launcher.launcher_words(ranks) == []
    model.train("a.parquet", ranks=1, portions=4, progress=False)
    with pytest.raises(gr.RunError, match=r"ranks=2 needs mpirun, which was not found in PATH\n  help: .*openmpi-bin"):
        model.train("a.parquet", ranks=2)


def test_another_launcher_is_taken_as_given(model, tmp_path):
    srun = write_program(tmp_path / "srun", "import os; os.execv(sys.argv[4], sys.argv[4:])")
    model.train("a.parquet", ranks=2, launcher=[str(srun), "--mpi=pmix"], progress=False)
    assert flags_of(model)[0] == "train"
    with pytest.raises(gr.RunError, match="the launcher nowhere was not found"):
        model.train("a.parquet", ranks=2, launcher=["nowhere"])
    with pytest.raises(ValueError, match="needs a number of ranks: ranks=2"):
        model.train("a.parquet", launcher=["srun"])
    with pytest.raises(TypeError, match=r"\['srun', '--mpi=pmix'\], got the text"):
        model.train("a.parquet", ranks=2, launcher="srun --mpi=pmix")


def test_numbers_of_ranks_that_make_no_sense(model, mpirun, monkeypatch):
    for ranks in (0, -1, 2.0, True, "2"):
        with pytest.raises(ValueError, match="ranks must be a number of at least 1, got"):
            model.train("a.parquet", ranks=ranks)
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    with pytest.raises(gr.RunError, match=r"a rank itself \(OMPI_COMM_WORLD_SIZE=4\)\n  help: start this"):
        model.train("a.parquet", ranks=2)


BOX = "-" * 74
ENDED = f"{BOX}\nPrimary job  terminated normally, but 1 process returned\na non-zero exit code.\n{BOX}\n"


def test_errors_of_ranks_are_told_without_the_launcher(model, mpirun):
    write_program(
        model.binary, f"sys.stderr.write('model.py:3: error: bad\\n  help: fix it\\n' + {ENDED!r}); sys.exit(3)"
    )
    with pytest.raises(gr.RunError) as caught:
        model.train("a.parquet", ranks=2)
    assert (str(caught.value), caught.value.status) == ("model.py:3: error: bad\n  help: fix it", 3)
    write_program(model.binary, f"sys.stderr.write({ENDED!r}); sys.exit(1)")  # nothing else is known
    with pytest.raises(gr.RunError, match="a non-zero exit code"):
        model.train("a.parquet", ranks=2)


# -- what a run gives -------------------------------------------------------------------------------------------------


def test_a_run_reads_its_profile_and_its_best(model, tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "profile.json").write_text('{"steps": 3, "ops": []}')
    body = f"""print('{{"event": "profile", "folder": "{tmp_path}/p"}}')
print('{{"event": "done", "final": {{"stopped_early": true, "best": {{"epoch": 2, "auc": 0.5}}}}, "timings": {{}}}}')"""
    write_program(model.binary, body)
    run = model.train("a.parquet", patience=2, monitor="auc", tensorboard="tb", profile=tmp_path / "p", progress=False)
    assert run.profile == {"steps": 3, "ops": []}
    assert run.stopped_early and run.best == {"epoch": 2, "auc": 0.5}
    assert run.best_checkpoint == model.checkpoint / "best"


def test_flags_of_watching(model):
    model.train("a.parquet", patience=2, monitor="auc", tensorboard="tb", profile="p", progress=False)
    flags = flags_of(model)
    assert flags[-8:] == ["--patience", "2", "--monitor", "auc", "--tensorboard", "tb", "--profile", "p"]


def test_a_run_without_watching_has_none(model):
    run = model.train("a.parquet", progress=False)
    assert run.profile is None and run.best is None and run.best_checkpoint is None and not run.stopped_early
