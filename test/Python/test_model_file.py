"""Model files as Python writes them, read by genrec-translate."""

import subprocess

import genrec as gr
import pytest
from genrec import nn
from genrec.recording import Tensor, ValueType
from model_writing import EXAMPLES, find_tool, import_model, translate, write_example, write_ranker

EVERYTHING = """\
event = batch.history.truncate(20)
hashed = gr.hash(batch.name, bits=40, kind="murmur3", seed=3)
rest = gr.mod(batch.user, 9) + gr.bucketize(batch.user, [0.5, 10])
x = self.item(event.item) * 2.0 - self.item(event.item) / 3.0
x = self.block(gr.maximum(x, -x))
x = nn.attention(x, x, x, heads=2, score="silu", causal=False, window=4, dropout=0.1)
x = nn.layer_norm(nn.rms_norm(x)) + gr.where(event.position() > 2, x, 0.0)
for function in (nn.abs, nn.square, nn.exp, nn.tanh, nn.sigmoid, nn.silu, nn.relu, nn.gelu, nn.softplus):
    x = function(x)
x = nn.log(nn.sqrt(nn.square(x) + 1.0)) * nn.rsqrt(nn.square(x) + 1.0)
query = nn.l2_normalize(nn.dropout(x, 0.2))
next = event.item.lead()
gr.loss.sampled_softmax(query, next, self.item.l2_normalized(), self.items, negatives=4, temperature=0.1, name="next")
gr.loss.in_batch_softmax(query, self.item(next), next, temperature=0.1, log_q=query.row_sum(), name="in_batch")
gr.loss.full_softmax(query, event.item.lag(2), self.item, self.items, max_items=100, name="all", scale=0.5)
one = query.last() + query.first() + query.max() + query.mean() + query.sum()
tags = self.item(batch.impression.tags).sum(batch)
shown = batch.impression
wide = gr.concat(self.item(shown.item), one + tags, self.user(hashed), self.user(rest))
logit = self.score(wide[:, 0:2]) * shown.length().astype(gr.float32).fanout(shown)
gr.loss.bce_with_logits(logit, shown.label, name="click")
gr.loss.softmax_cross_entropy(wide, gr.mod(shown.item, 8), name="class")
gr.metric.auc(logit, shown.label)
user, joined, item = gr.concat_rows(one, query, self.item(shown.item)).split_rows()
found = gr.top_k(joined.last(), self.item, self.items, k=3, exclude=event.item)
gr.metric.ranking(found, target=batch.held_out, at=(1, 3))
gr.output(user=batch.user, top=found, row=wide[:, 1].sum(), valid=user[:, 0] > 0)
crossed = gr.cross(batch.history.item, shown.item, bits=30, kind="farmhash64")
many = gr.multi_hash(batch.name, bits=20, count=2, seed=5)
both = gr.pairs(shown, batch.history)
long = self.item(batch.history.pad(4, side="front").item)
late = gr.time_delta(batch.history.time, batch.history.time.lag(), unit=3600.0, edges=[1, 24])
numbers = gr.clip(gr.scale(gr.log1p(gr.fill_missing(batch.held_out, 3).astype(gr.float32)), 0.5, 1.0), 0.0, 1.0)
y = gr.concat(self.item(crossed).sum(batch), self.user(many[:, 1]), long.tile(2), numbers, self.item(late).sum())
y = gr.concat(y, self.attend(self.item(shown.item), self.item(batch.history.item)).sum())
y = gr.concat(y, nn.dot_interaction(one, tags, self_interaction=True), nn.softmax(self.cross(one)))
masked = self.masked(self.item(batch.history.item), target=gr.sequence_length(shown))
gr.metric.gauc(logit, shown.label, key=shown.item)
gr.metric.ne(logit, shown.label)
weight = self.item(shown.item).fanout(both) * self.item(batch.history.item).beside(both)
gr.loss.mean(nn.mixture(gr.concat(one, tags), one, top_k=1).row_sum() + masked.sum().row_sum(), name="mixed")
towers = self.item(self.items.item) + self.item(self.items.tags.value).mean() + self.items.image
gr.loss.sampled_softmax(one, batch.user, towers, self.items, negatives=2, name="towers")
cheap = gr.fill_missing(self.items.price[shown.item], 0.0) < 1.0
drawn = gr.random.normal(shown, std=0.1) + gr.random.uniform(batch, -1.0, 1.0).fanout(shown)
chosen = (cheap & gr.random.bernoulli(shown, 0.5)) | ~(shown.label > 0.0)
fields = gr.stack(nn.sin(one), nn.cos(tags), gr.detach(one), self.items.image[batch.user])
y = gr.concat(y, fields.mean(), gr.concat_rows(one, tags).sum(), gr.where(chosen, drawn, 0.0).sum())
gr.loss.softmax_cross_entropy(wide, gr.mod(shown.item, 8), label_smoothing=0.1, name="smooth")
gr.loss.bce_with_logits(logit, shown.label, label_smoothing=0.1, name="smooth_click")
gr.loss.mean(y.row_sum() + weight.sum().sum().row_sum(), name="rest", log_variance=0.5)"""


@pytest.fixture
def everything(tmp_path, monkeypatch):
    """The path of a model file with every op that the front end records."""
    monkeypatch.chdir(tmp_path)
    module = write_ranker(tmp_path, EVERYTHING)
    model = module.Ranker()
    model.clip_norm, model.schedule = 1.0, gr.Schedule("cosine", warmup=5, steps=100, final=0.1)
    recording = gr.record(model, module.schema)
    gr.write_model(recording, "everything.genrec")
    return recording, tmp_path / "everything.genrec"


def test_every_op_imports_and_verifies(everything):
    recording, path = everything
    text = import_model(path)
    for name in {op.name for op in recording.ops}:
        assert f"genrec.{name} " in text, name
    assert text.count("genrec.param @") == len(recording.parameters)
    assert "genrec.model @Ranker attributes {clip_norm = 1.000000e+00" in text
    assert 'schedule = {final = 1.000000e-01 : f64, kind = "cosine", steps = 100 : i64, warmup = 5 : i64}' in text


def test_the_file_survives_mlir(everything, tmp_path):
    _, path = everything
    (tmp_path / "model.mlir").write_text(import_model(path, "--mlir-print-debuginfo"))
    subprocess.run([translate(), "--export-model", "model.mlir", "-o", "again.genrec"], check=True)
    again = import_model(tmp_path / "again.genrec", "--mlir-print-debuginfo").replace("again.genrec", path.name)
    assert again == (tmp_path / "model.mlir").read_text()


def test_places_travel(everything):
    _, path = everything
    text = import_model(path, "--mlir-print-debuginfo")
    assert 'loc("ranker.py":21:17 to :43)' in text  # batch.history.truncate(20)
    assert 'loc("event"(' in text


def test_files_from_before_an_operand_was_added(tmp_path):
    """Attention without `target`, a metric without `key`: what files of the first writers look like."""
    body = "x = self.item(batch.history.item)\ngr.metric.auc(nn.attention(x, x, x)[:, 0], batch.history.item > 0)"
    module = write_ranker(tmp_path, body)
    recording = gr.record(module.Ranker(), module.schema)
    for op in recording.ops:
        if op.name in ("attention", "metric"):
            assert op.segments[-1] == 0
            op.segments = op.segments[:-1]
    gr.write_model(recording, tmp_path / "old.genrec")
    assert "genrec.attention " in import_model(tmp_path / "old.genrec")


def test_recording_twice_gives_the_same_bytes(tmp_path):
    module = write_ranker(tmp_path, EVERYTHING)
    files = {gr.model_bytes(gr.record(module.Ranker(), module.schema)) for _ in range(2)}
    assert len(files) == 1


def test_the_compiler_names_the_users_line(tmp_path, monkeypatch):
    """A rule that only the compiler checks is reported where the front end's own errors are."""
    monkeypatch.chdir(tmp_path)
    module = write_ranker(tmp_path, "x = nn.relu(self.user(batch.user))\ngr.output(x=x)")
    recording = gr.record(module.Ranker(), module.schema)
    relu = next(op for op in recording.ops if op.name == "relu")
    relu.results[0].type = recording.ops[0].results[0].type
    gr.write_model(recording, "broken.genrec")
    result = subprocess.run([translate(), "--import-model", "broken.genrec"], capture_output=True, text=True)
    assert result.returncode != 0
    lines = result.stderr.splitlines()
    assert lines[0].startswith("ranker.py:21: error: 'relu'")
    assert lines[1:] == [
        "   21 |         x = nn.relu(self.user(batch.user))",
        "      |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    ]


@pytest.mark.parametrize(("element", "number"), [("int32", 3_000_000_000), ("bool", 2)])
def test_a_constant_beyond_its_type(element, number, tmp_path, monkeypatch):
    """Of a file that another front end wrote: Python's refuses it."""
    monkeypatch.chdir(tmp_path)
    module = write_ranker(tmp_path, "gr.output(x=(batch.user * 2).astype(gr.float32))")
    recording = gr.record(module.Ranker(), module.schema)
    constant = next(op for op in recording.ops if op.name == "constant")
    constant.attributes["value"] = Tensor(ValueType("", (), element), (number,))
    gr.write_model(recording, "beyond.genrec")
    command = [find_tool("genrec-compile"), "beyond.genrec", "--emit=mlir", "-o", "-"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode != 0
    kind = {"int32": "i32", "bool": "i1"}[element]
    assert f"ranker.py:21: error: a constant of '{kind}' cannot hold {number}\n" in result.stderr


def test_many_columns(tmp_path):
    """Hundreds of columns are a loop over hundreds of columns."""

    class Wide(gr.Model):
        def __init__(self):
            self.tables = [gr.Table(f"t{i}", dim=4) for i in range(600)]
            self.head = nn.MLP([2400, 8, 1])

        def forward(self, batch):
            x = gr.concat([table(batch[f"c{i}"]) for i, table in enumerate(self.tables)])
            gr.loss.bce_with_logits(self.head(x), batch.label)

    schema = gr.Schema({"label": gr.float32, **{f"c{i}": gr.int64 for i in range(600)}})
    path = tmp_path / "wide.genrec"
    gr.write_model(gr.record(Wide(), schema), path)
    assert import_model(path).count("genrec.lookup ") == 600


@pytest.mark.parametrize("example", EXAMPLES)
def test_examples_record_and_import(example, tmp_path):
    path = write_example(example, tmp_path)
    assert f"genrec.model @{EXAMPLES[example][0]}" in import_model(path)
