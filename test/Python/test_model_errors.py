"""Mistakes in a model: each is said at the user's line, with the fix. The cases are in Inputs/model_errors.txt."""

import re
from datetime import timedelta
from pathlib import Path

import genrec as gr
import genrec.table
import pytest
from model_writing import load, write_ranker

CASES = (Path(__file__).parent / "Inputs" / "model_errors.txt").read_text().split("\n=== ")[1:]


@pytest.fixture
def told(tmp_path, monkeypatch):
    """Records the model of a text, a class named after the file <name>.py, and returns what is told of it."""

    def tell(name, text):
        monkeypatch.chdir(tmp_path)
        (tmp_path / f"{name}.py").write_text(text)
        with pytest.raises(gr.ModelError) as raised:
            gr.record(getattr(load(tmp_path / f"{name}.py"), name.title())(), gr.Schema({"user": gr.int64}))
        return str(raised.value)

    return tell


@pytest.mark.parametrize("case", CASES, ids=[case.splitlines()[0] for case in CASES])
def test_message(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    body, expected = case.split("\n", 1)[1].split("\n---\n")
    module = write_ranker(tmp_path, body)
    with pytest.raises(gr.ModelError) as raised:
        gr.record(module.Ranker(), module.schema)
    assert str(raised.value).splitlines() == expected.strip("\n").splitlines()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("t.parquet", "got the path 't.parquet'; read it from the file: gr.Schema.from_parquet('t.parquet')"),
        (Path("t.parquet"), "gr.Schema.from_parquet('t.parquet')"),
        ({"user": gr.int64}, "got a mapping; make one of it: gr.Schema({...})"),
        (None, "got NoneType"),
    ],
)
def test_what_is_no_schema(schema, message, tmp_path):
    module = write_ranker(tmp_path, "gr.output(u=batch.user)")
    for call in (gr.record, gr.compile):
        with pytest.raises(TypeError) as raised:
            call(module.Ranker(), schema)
        assert "a model is recorded for a gr.Schema, got " in str(raised.value) and message in str(raised.value)


def test_texts_of_a_padded_list_are_named_where_they_are_read():
    """As where a value is padded; the compiler refused them by the names that its own types have."""
    schema = gr.Schema({"history": [{"name": gr.string}]})
    padded = {
        "of the list": lambda batch: gr.hash(batch.history.pad(3).name, bits=20),
        "of the value": lambda batch: gr.hash(batch.history.name.pad(3), bits=20),
        "cut before": lambda batch: gr.hash(batch.history.truncate(2).pad(3).name, bits=20),
    }
    for make in padded.values():

        class Padded(gr.Model):
            def forward(self, batch, make=make):
                gr.output(x=make(batch))

        with pytest.raises(gr.ModelError, match="pad cannot take strings") as raised:
            gr.record(Padded(), schema)
        assert "hash them first, then .pad(...)" in str(raised.value)


def test_a_class_is_no_model(tmp_path):
    module = write_ranker(tmp_path, "gr.output(u=batch.user)")
    with pytest.raises(TypeError, match=r"a model is an object: Ranker\(...\), not the class Ranker itself"):
        gr.record(module.Ranker, module.schema)


def test_unknown_feature_is_an_attribute_error_too(tmp_path):
    module = write_ranker(tmp_path, "assert not hasattr(batch, 'age') and 'age' not in batch\ngr.output(u=batch.user)")
    gr.record(module.Ranker(), module.schema)


def test_a_file_elsewhere_is_named_in_full(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    module = write_ranker(tmp_path, "batch.nothing")
    with pytest.raises(gr.ModelError) as raised:
        gr.record(module.Ranker(), module.schema)
    assert str(raised.value).startswith(f"{tmp_path}/ranker.py:21: error: 'request' has no feature 'nothing'")


def test_without_source_the_message_remains():
    scope = {}
    exec(
        compile("import genrec as gr\nclass M(gr.Model):\n def forward(self, b):\n  b.nothing\n", "<made>", "exec"),
        scope,
    )
    with pytest.raises(gr.ModelError) as raised:
        gr.record(scope["M"](), gr.Schema({"user": gr.int64}))
    assert str(raised.value) == (
        "<made>:4: error: 'request' has no feature 'nothing'\n  help: 'request' has user (int64)"
    )


def test_values_exist_only_while_recording():
    with pytest.raises(gr.ModelError, match="table 'user' outside of a model"):
        gr.Table("user", dim=2)(1)


def test_two_tables_of_one_name(told):
    message = told(
        "twins",
        "import genrec as gr\n"
        "class Twins(gr.Model):\n"
        "    def __init__(self):\n"
        '        self.a = gr.Table("user", dim=2)\n'
        '        self.b = gr.Table("user", dim=3)\n'
        "    def forward(self, batch):\n"
        "        gr.output(a=self.a(batch.user))\n",
    )
    assert message == (
        "twins.py:5: error: two tables are named 'user'\n"
        '    5 |         self.b = gr.Table("user", dim=3)\n'
        "      |                  ^^^^^^^^^^^^^^^^^^^^^^^ the other is made at twins.py:4\n"
        "  help: use one table in both places, or give them different names"
    )


def test_a_parameter_with_the_name_of_a_tensor_of_a_table(told):
    message = told(
        "clash",
        "import genrec as gr\n"
        "class Tower(gr.Module):\n"
        "    def __init__(self):\n"
        '        self.table = gr.Table("item", dim=2)\n'
        "        self.values = gr.Parameter((2,), gr.init.ones())\n"
        "class Clash(gr.Model):\n"
        "    def __init__(self):\n"
        "        self.item = Tower()\n"
        "    def forward(self, batch):\n"
        "        gr.output(a=self.item.table(batch.user) * self.item.values)\n",
    )
    assert message == (
        "clash.py:5: error: parameter 'item.values' and table 'item' would both be saved as 'item.values'\n"
        "    5 |         self.values = gr.Parameter((2,), gr.init.ones())\n"
        "      |                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ table 'item' is made at clash.py:4\n"
        "  help: checkpoints name tensors after tables and after the attributes of parameters: rename one of the two"
    )


def record_names(tables, parameters):
    """Records a model of tables and parameters of those names."""

    class Names(gr.Model):
        def __init__(self):
            self.tables = [gr.Table(name, dim=2) for name in tables]
            for name in parameters:
                setattr(self, name, gr.Parameter((2,), gr.init.ones()))

        def forward(self, batch):
            for i, table in enumerate(self.tables):
                gr.output(**{f"table{i}": table(batch.user)})
            for i, name in enumerate(parameters):
                gr.output(**{f"parameter{i}": getattr(self, name) * batch.user.astype(gr.float32)})

    gr.record(Names(), gr.Schema({"user": gr.int64}))


@pytest.mark.parametrize(
    ("tables", "parameters", "saved"),
    [
        *((["u"], [f"u.{one}"], f"u.{one}") for one in ("ids", "values", "last_step", "steps", "state0", "state10")),
        (["u"], ["u.waiting.ids"], "u.waiting.ids"),
        (["u"], ["u.removed.ids"], "u.removed.ids"),
        (["u", "u.waiting"], [], "u.waiting.ids"),
        ([], ["w", "w.state0"], "w.state0"),
    ],
)
def test_tensors_of_a_checkpoint_have_names_of_their_own(tables, parameters, saved):
    with pytest.raises(gr.ModelError, match=f"would both be saved as '{saved}'"):
        record_names(tables, parameters)


def test_the_runtime_has_the_names_of_tensors_that_are_looked_for():
    """As its header writes them: what is kept of every row, of ids that wait, and of what has left."""
    header = (Path(__file__).parents[2] / "runtime" / "checkpoint" / "tensor_names.h").read_text()
    kept = ["ids", *re.findall(r'^    \{"\.(\w+)", RowColumn', header, re.MULTILINE)]
    waiting, removed = re.findall(r'return name \+ "\.([\w.]+)";', header)
    assert len(kept) == 3
    expected = [*kept, removed, *(f"{waiting}.{one}" for one in [*kept, removed]), "values"]
    assert sorted(genrec.table._OF_TABLES) == sorted(expected)


def test_names_that_only_resemble_those_of_tensors():
    record_names(["u", "u.value", "v.ids"], ["u.idx", "u.state", "u.state01", "w.state0", "w.state1", "u.values.x"])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: gr.Table("t", dim=0), "the dimension of table 't' must be at least 1, got 0"),
        (lambda: gr.Table("t", dim=1, id_bits=64), "the id_bits of table 't' must be 1 to 63, got 64"),
        (lambda: gr.Table("", dim=1), "a table needs a name"),
        (lambda: gr.Table("t", dim=1, bounded=0), "'bounded' of table 't' must be at least 1, got 0"),
        (
            lambda: gr.Table("t", dim=1, ttl=timedelta(0)),
            r"'ttl' of table 't' must be whole seconds, at least 1, got datetime.timedelta\(0\)",
        ),
        (lambda: gr.Table("t", dim=1, ttl=timedelta(milliseconds=1500)), "'ttl' of table 't' must be whole seconds"),
        (lambda: gr.Table("t", dim=1, ttl=-1), "'ttl' of table 't' must be at least 1, got -1"),
        (lambda: gr.Table("t", dim=1, admit_after=0), "'admit_after' of table 't' must be at least 1, got 0"),
        (
            lambda: gr.Table("t", dim=1, bounded=3, evict="fifo"),
            "'evict' of table 't' must be one of lru, lfu, got 'fifo'",
        ),
        (
            lambda: gr.Table("t", dim=1, evict="lfu"),
            "'evict' of table 't' says what leaves a bounded table, but 'bounded'",
        ),
        (
            lambda: gr.optim.RowWiseAdagrad(eps=0),
            "option 'eps' of optimizer rowwise_adagrad must be greater than 0, got 0",
        ),
        (lambda: gr.optim.Adam(betas=(0.9, 1.0)), r"option 'beta2' of optimizer adam must be in \[0, 1\), got 1.0"),
        (lambda: gr.optim.SGD(lr=-1), "option 'lr' of optimizer sgd must be at least 0, got -1"),
        (lambda: gr.init.normal(-0.1), "the scale of gr.init.normal must be finite and at least 0, got -0.1"),
        (lambda: gr.Schedule("square"), "a schedule is 'constant', 'linear' or 'cosine', not 'square'"),
        (lambda: gr.nn.MLP([3]), r"an MLP needs the size of its rows and of at least one layer, got \[3\]"),
        (lambda: gr.nn.RelativeTime(129), "nn.RelativeTime takes 1 to 128 buckets, got 129"),
        (lambda: gr.nn.HSTUBlock(4, heads=0), "heads of nn.HSTUBlock must be at least 1, got 0"),
        (lambda: gr.nn.SelfAttention(4, qk=0), "qk of nn.SelfAttention must be at least 1, got 0"),
        (lambda: gr.Parameter((3,), gr.init.xavier_normal()), r"gr.init.xavier_normal needs two sizes"),
    ],
)
def test_wrong_options(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("value", [2.5, True, "3"])
def test_rules_about_rows_are_whole_numbers(value):
    wanted = f"'ttl' of table 't' must be a whole number of steps, or a datetime.timedelta, got {value!r}"
    with pytest.raises(TypeError, match=wanted):
        gr.Table("t", dim=1, ttl=value)


@pytest.mark.parametrize("made", ["SelfAttention(8, 3)", "HSTUBlock(8, heads=3, qk=2)", "CrossAttention(8, heads=3)"])
def test_heads_share_the_columns_equally(told, made):
    line = f"    def __init__(self):\n        super().__init__()\n        self.a = nn.{made}\n"
    message = told("heads", f"import genrec as gr\nfrom genrec import nn\nclass Heads(gr.Model):\n{line}")
    name = made.partition("(")[0]
    assert message.startswith(f"heads.py:6: error: nn.{name} cannot split 8 columns into 3 heads\n")
    assert "give the sizes of a head: qk= and v=" in message
    assert gr.nn.SelfAttention(8, heads=3, qk=2, v=5).out.weight.shape == (15, 8)


def test_rowwise_adagrad_trains_no_parameters(told):
    message = told(
        "dense",
        "import genrec as gr\n"
        "class Dense(gr.Model):\n"
        "    def __init__(self):\n"
        "        super().__init__(optimizer=gr.optim.RowWiseAdagrad(0.1))\n"
        '        self.item = gr.Table("item", dim=2)\n'
        "        self.head = gr.nn.Linear(2, 1)\n"
        "    def forward(self, batch):\n"
        "        gr.output(a=self.head(self.item(batch.user)))\n",
    )
    assert message.startswith(
        "dense.py:6: error: parameter 'head.weight' would be trained by RowWiseAdagrad, which is for tables only\n"
    )
    assert "help: give the model another optimizer of gr.optim, and RowWiseAdagrad to its tables" in message


def test_an_attribute_of_the_model_that_is_taken(told):
    message = told(
        "named",
        "import genrec as gr\n"
        "class Named(gr.Model):\n"
        "    def __init__(self):\n"
        '        self.name = gr.Table("name", dim=2)\n'
        "    def forward(self, batch):\n"
        "        gr.output(name=self.name(batch.user))\n",
    )
    assert message.splitlines() == [
        "named.py:3: error: 'name' of a model must be a text, got Table",
        "    3 |     def __init__(self):",
        "  help: it is an attribute of gr.Model itself: what is your own needs another name than 'name'",
    ]


@pytest.mark.parametrize(
    "options,message",
    [
        ({"dim": 2.5}, "'dim' of table 't' must be a whole number, got 2.5"),
        ({"dim": 2, "init": 0}, "'init' of table 't' must be one of gr.init, got 0"),
        ({"dim": 2, "optimizer": "adam"}, "'optimizer' of table 't' must be one of gr.optim, got 'adam'"),
    ],
    ids=["dim", "init", "optimizer"],
)
def test_a_table_of_something_else(options, message):
    with pytest.raises(TypeError) as raised:
        gr.Table("t", **options)
    assert str(raised.value) == message
