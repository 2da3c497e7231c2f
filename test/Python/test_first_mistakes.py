"""Mistakes of a first hour that are none of an op: names of other libraries, arguments of other libraries."""

import copy

import genrec as gr
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from genrec import nn
from genrec.hints import OF_GENREC, OF_LOSS, OF_METRIC, OF_NN


@pytest.mark.parametrize(
    ("module", "name", "told"),
    [
        (nn, "Sequential", "module 'genrec.nn' has no attribute 'Sequential'; call the layers one after another"),
        (nn, "ReLU", "nn.relu is a function"),
        (nn, "layernorm", "did you mean 'LayerNorm'?"),
        (nn, "concat", "; gr.concat"),
        (gr.loss, "cross_entropy", "; gr.loss.softmax_cross_entropy of classes, gr.loss.bce_with_logits of one logit"),
        (gr.loss, "fullsoftmax", "did you mean 'full_softmax'?"),
        (gr.metric, "ndcg", "gr.metric.ranking(…, at=(10, 50)) over a catalogue"),
        (gr, "Linear", "it is in nn: from genrec import nn"),
        (gr, "Tabel", "did you mean 'Table'?"),
        (gr, "float", "gr.float32 or gr.float64"),
    ],
)
def test_a_name_that_is_missing_has_a_hint(module, name, told):
    with pytest.raises(AttributeError) as raised:
        getattr(module, name)
    assert told in str(raised.value)


def test_what_hints_replace_is_missing():
    """A hint for something that there is would never be shown."""
    for module, hints in ((nn, OF_NN), (gr.loss, OF_LOSS), (gr.metric, OF_METRIC), (gr, OF_GENREC)):
        assert not [name for name in hints if name in vars(module)]


def test_modules_have_no_other_names():
    for module in (nn, gr.loss, gr.metric, gr):
        assert not hasattr(module, "__wrapped__") and not hasattr(module, "_private")


def test_a_table_takes_a_name_first():
    with pytest.raises(TypeError, match="the name of a table must be a text, got 100000: .* no number of rows"):
        gr.Table(100_000, 16)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (
            lambda: gr.Table("item", 100_000, 16),
            "table 'item' takes the size of its rows alone: gr.Table('item', dim=16)",
        ),
        (lambda: nn.Parameter(8, gr.init.zeros()), "a parameter takes its sizes, such as (16,) or (16, 4), got int"),
        (lambda: nn.Parameter((8,), gr.init.zeros), "must be one of gr.init, such as gr.init.zeros(), got <function"),
        (lambda: nn.Parameter((8,), "zeros"), "must be one of gr.init, such as gr.init.zeros(), got 'zeros'"),
        (lambda: nn.MLP(8, 16, 4), "nn.MLP takes its sizes as one list, nn.MLP([32, 64, 1]), got 8"),
        (lambda: nn.Linear("8", 4), "the sizes of nn.Linear must be whole numbers, got '8' and 4"),
        (lambda: nn.MLP([8, 4.0]), "the sizes of nn.Linear must be whole numbers, got 8 and 4.0"),
        (lambda: gr.Schema.from_parquet(["a.parquet"]), "takes paths, one by one, got list; a list: *paths"),
        (lambda: gr.optim.Adam(betas=0.9), "'betas' of optimizer adam are two numbers, (0.9, 0.999), got 0.9"),
        (lambda: gr.optim.Adam("0.1"), "option 'lr' of optimizer adam must be a number, got '0.1'"),
    ],
)
def test_arguments_of_what_a_model_is_made_of(make, told):
    with pytest.raises(TypeError) as raised:
        make()
    assert told in str(raised.value)


def test_what_parts_of_a_model_lack():
    """An attribute error as any other, so `hasattr` works, with a help where there is one."""
    parts = {
        "train": (nn.Linear(2, 2), "dropout acts while training"),
        "parameters": (Popular(), "an optimizer is for the whole model"),
        "wieght": (nn.Linear(2, 2), "did you mean 'weight'?"),
        "num_embeddings": (gr.Table("item", dim=2), "a table grows with its ids"),
        "shap": (nn.Parameter((2,), gr.init.zeros()), "did you mean 'shape'?"),
    }
    for name, (part, told) in parts.items():
        assert not hasattr(part, name) and not hasattr(part, "_" + name)
        with pytest.raises(AttributeError) as raised:
            getattr(part, name)
        assert told in str(raised.value)
        assert type(copy.deepcopy(part)) is type(part)


def test_a_property_that_fails_says_why_itself():
    class Tower(nn.Module):
        @property
        def size(self):
            return self.table.dim

    with pytest.raises(AttributeError, match="Tower has no attribute 'table'"):
        _ = Tower().size


def test_calls_of_the_users_own_functions_are_not_explained():
    def concat(x):
        return x

    class Small(gr.Model):
        def forward(self, batch):
            gr.output(x=concat(batch.user, axis=1))

    with pytest.raises(TypeError, match=r"concat\(\) got an unexpected keyword argument 'axis'") as raised:
        gr.record(Small(), SCHEMA)
    assert not isinstance(raised.value, gr.ModelError)


def test_what_forward_returns_is_not_looked_at():
    class Returning(gr.Model):
        def forward(self, batch):
            return batch.user

    with pytest.raises(gr.ModelError, match=r"declares no loss.*(\n.*)*what it returns is not looked at"):
        gr.record(Returning(), SCHEMA)


def test_sizes_are_whole_numbers():
    with pytest.raises(TypeError, match=r"the sizes of nn.Linear must be whole numbers, got 8.0 and 4"):
        nn.Linear(8.0, 4)


def test_a_catalogue_lists_its_columns(tmp_path):
    pq.write_table(pa.table({"item": [1, 2], "price": [1.0, 2.0]}), tmp_path / "items.parquet")
    with pytest.raises(gr.DataError, match="there is no such column; the columns are item, price"):
        gr.catalogue(tmp_path / "items.parquet", id="movie")


def test_a_catalogue_knows_its_nulls_and_its_size(tmp_path):
    path = tmp_path / "items.parquet"
    pq.write_table(pa.table({"item": [1, 2], "price": [1.0, None]}), path)
    schema = gr.Schema.from_parquet(path, root="items", nullable=["price"])
    with pytest.raises(ValueError, match="'nullable' cannot act beside 'schema'"):
        gr.catalogue(path, schema=schema, nullable=["price"])

    class Scored(gr.Model):
        def __init__(self, **options):
            super().__init__()
            self.items, self.item = gr.catalogue(path, **options), gr.Table("item", dim=2)

        def forward(self, batch):
            gr.output(price=gr.fill_missing(self.items.price, 0.0)[batch.item])
            gr.output(scores=gr.scores(self.item(batch.item), self.item, self.items))  # of as many items as there are

    written = [gr.model_bytes(gr.record(Scored(**options), gr.Schema({"item": gr.int64})))
               for options in ({"nullable": ["price"]}, {"schema": schema, "id": "item"})]  # fmt: skip
    assert len(written[0]) == len(written[1])


def loss_operands(forward):
    class Small(gr.Model):
        def forward(self, batch):
            forward(batch)

    schema = gr.Schema({"price": gr.float32, "rating": gr.float32.nullable()})
    return next(op for op in gr.record(Small(), schema).ops if op.name == "loss")


def test_null_rows_of_a_loss_do_not_count():
    """What is computed of a null is null, and a loss of it has no weight."""
    squared = loss_operands(lambda batch: gr.loss.mean((batch.price - batch.rating) ** 2))
    assert squared.segments == (1, 0, 1)
    assert loss_operands(lambda batch: gr.loss.mean(batch.price)).segments == (1, 0, 0)


def test_numbers_of_where_become_floats_together():
    class Small(gr.Model):
        def forward(self, batch):
            assert gr.where(batch.price > 1.0, 1, 0.5).dtype == gr.float32
            assert gr.where(batch.price > 1.0, 0.5, 1).dtype == gr.float32
            assert gr.where(batch.price > 1.0, 2, 1).dtype == gr.int64
            gr.output(x=batch.price)

    gr.record(Small(), gr.Schema({"price": gr.float32}))


class Popular(gr.Model):
    def forward(self, batch):
        gr.output(user=batch.user)


SCHEMA = gr.Schema({"user": gr.int64})


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"opt": "fast"}, ValueError, "opt must be 0, 1 or 2, got 'fast'"),
        (
            {"flags": "--sink-fanout=false"},
            TypeError,
            "flags takes a list of flags, ['--sink-fanout=false'], got the text",
        ),
        ({"output": "popular.py"}, gr.CompileError, "output popular.py: the name of a binary does not end in .py"),
        ({"output": "popular.genrec"}, gr.CompileError, "help: output='"),
        ({"output": "notes"}, gr.CompileError, "notes exists and is no compiled model\n  help: name another output"),
        ({"output": "/proc/popular"}, gr.CompileError, "/proc/popular.genrec: cannot be written"),
    ],
)
def test_options_of_compile(options, kind, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").write_text("mine")
    (tmp_path / "popular.py").write_text("mine")
    with pytest.raises(kind) as raised:
        gr.compile(Popular(), SCHEMA, **options)
    assert told in str(raised.value)
    assert (tmp_path / "notes").read_text() == (tmp_path / "popular.py").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes", "popular.py"]


def test_model_and_schema_exchanged():
    with pytest.raises(TypeError, match="the model must be a gr.Model, got Schema; the model comes before the schema"):
        gr.compile(SCHEMA, Popular())


@pytest.mark.parametrize(
    ("make", "kind", "told"),
    [
        (lambda: gr.Schema([("user", gr.int64)]), TypeError, 'takes a mapping, {"user": gr.int64, …}, got list'),
        (lambda: gr.Schema({"user": int}), ValueError, "got <class 'int'>; write gr.int64"),
        (lambda: gr.Schema({"h": {"item": gr.int64.nullable()}}), ValueError,
         "got {'item': gr.int64.nullable()}; a list of rows with these fields is [{...}]"),
        (lambda: gr.Schema({"h": (gr.int64,)}), ValueError, "a list has one kind of entries: [gr.int64]"),
        (lambda: gr.Schema.from_parquet("x.parquet", nullable="age"), TypeError,
         "nullable takes a list of features, ['age'], got the text 'age'"),
        (lambda: gr.Schema.from_parquet("absent.parquet"), gr.DataError, "absent.parquet: there is no such file"),
        (lambda: gr.Schema.from_parquet(__file__), gr.DataError, "text files become Parquet by genrec.data"),
        (lambda: gr.catalogue("absent.parquet"), gr.DataError, "absent.parquet: there is no such file"),
        (lambda: gr.CompiledModel("absent").info(), gr.RunError, "absent is no compiled model: No such file"),
        (lambda: gr.CompiledModel(".").info(), gr.RunError, " is a folder\n  help: name the binary in it, or make one"),
        (lambda: gr.CompiledModel("absent").fit(), AttributeError, "has no 'fit'; .train(data, epochs=...)"),
        (lambda: gr.CompiledModel("absent").sumary(), AttributeError, "has no 'sumary'; did you mean 'summary'?"),
        (lambda: gr.CompiledModel("absent").train("x.parquet"), gr.RunError, "help: make one: gr.compile("),
        (lambda: gr.CompiledModel("a.genrec").info(), gr.RunError, "it is a model file; the binary is made of it"),
        (lambda: gr.CompiledModel("absent").train(pa.table({"user": [1]})), TypeError,
         "'data' takes paths of Parquet files, got Table; write a frame first"),
    ],
)  # fmt: skip
def test_schemas_data_and_binaries(make, kind, told, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kind) as raised:
        make()
    assert told in str(raised.value)


def test_private_names_are_not_suggested():
    with pytest.raises(AttributeError, match="; did you mean 'checkpoint'[?]$"):
        _ = gr.CompiledModel("absent").default_checkpoint


def test_types_are_shown_as_they_are_written():
    written = [gr.int64, gr.bool_, gr.float32.vector(3).nullable(), gr.int32.padded(0), gr.timestamp()]
    assert repr(written) == "[gr.int64, gr.bool_, gr.float32.vector(3).nullable(), gr.int32.padded(0), gr.timestamp()]"
    assert [eval(repr(one)) for one in written] == written
