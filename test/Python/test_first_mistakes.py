"""Mistakes of a first hour that are none of an op: names of other libraries, arguments of other libraries."""

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


def test_sizes_are_whole_numbers():
    with pytest.raises(TypeError, match=r"the sizes of a parameter must be whole numbers, got \(8.0, 4\)"):
        nn.Linear(8.0, 4)


def test_a_catalogue_lists_its_columns(tmp_path):
    pq.write_table(pa.table({"item": [1, 2], "price": [1.0, 2.0]}), tmp_path / "items.parquet")
    with pytest.raises(gr.DataError, match="there is no such column; the columns are item, price"):
        gr.catalogue(tmp_path / "items.parquet", id="movie")


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
