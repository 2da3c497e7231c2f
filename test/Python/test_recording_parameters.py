"""Parameters, tables and optimizers, as they are recorded."""

from datetime import timedelta

import genrec as gr
import numpy as np
import pytest
from genrec import nn
from model_writing import import_model
from recorder import ITEM, record


def test_parameters_are_operands_on_both_sides():
    class Scaled(gr.Model):
        def __init__(self):
            super().__init__()
            self.scale, self.shift = (gr.Parameter((2,), gr.init.ones()) for _ in range(2))
            self.user = gr.Table("user", dim=2)

        def forward(self, batch):
            rate = 0.1 * self.scale + self.shift / 2.0 - self.scale * self.shift - (-self.shift) ** 2
            gr.output(x=self.scale * self.user(batch.user) + rate)

    ops = [op.name for op in gr.record(Scaled(), gr.Schema({"user": gr.int64})).ops]
    assert ops.count("param") == 2 and ops.count("mul") >= 4 and "sub" in ops
    with pytest.raises(gr.ModelError, match="a parameter outside of a model"):
        gr.Parameter((2,), gr.init.ones()) * 2.0
    assert gr.Parameter((2,), gr.init.ones()) != gr.Parameter((2,), gr.init.ones())


def test_elements_of_a_parameter(tmp_path):
    """Of one size; the compiler takes what is recorded."""
    weight = gr.Parameter((6,), gr.init.ones())

    def forward(batch):
        x = ITEM(batch.user)
        return weight[0], weight[-1], weight[np.int64(2)], weight[1:4], weight[-2:], x[..., 0], x[..., :2], +weight, +x

    recording, ops, values = record(forward, item=ITEM, weight=weight)
    assert [value.shape for value in values] == [(), (), (), (3,), (2,), (), (2,), (6,), (3,)]
    assert [op.attributes["offset"] for op in ops["slice_columns"]] == [0, 5, 2, 1, 4, 0, 0]
    gr.write_model(recording, tmp_path / "elements.genrec")
    assert "genrec.slice_columns" in import_model(tmp_path / "elements.genrec")


def test_parameters_in_comparisons_and_beside_arrays():
    weight, other = (gr.Parameter((3,), gr.init.ones()) for _ in range(2))

    def forward(batch):
        x = ITEM(batch.user)
        return weight > 0.0, weight == 1.0, weight != x, np.float32(2) * weight, np.ones(3) + weight

    _, ops, values = record(forward, item=ITEM, weight=weight)
    assert [value.dtype.name for value in values] == ["bool", "bool", "bool", "float32", "float32"]
    assert [value.shape for value in values] == [(3,)] * 5 and len(ops["param"]) == 1
    assert other not in [weight] and weight in [weight] and not weight == other


def test_parameters_are_named_by_where_they_hang():
    shared = nn.Linear(3, 3)
    parts = {"tower": [nn.Linear(3, 2), shared], "norm": {"last": nn.LayerNorm(2)}, "again": shared}

    def forward(batch):
        x = ITEM(batch.history.item)
        return parts["norm"]["last"](parts["tower"][0](shared(shared(x))))

    recording, ops, _ = record(forward, item=ITEM, **parts)
    assert list(recording.parameters) == [
        "tower.1.weight", "tower.1.bias", "tower.0.weight", "tower.0.bias", "norm.last.scale", "norm.last.bias",
    ]  # fmt: skip
    assert len(ops["param"]) == 6


def test_optimizers_are_the_models_unless_given():
    adam, sgd = gr.optim.Adam(0.5), gr.optim.SGD(0.1)
    own = gr.Table("own", dim=2, optimizer=sgd)

    def forward(batch):
        return ITEM(batch.user), own(batch.user)

    recording, _, _ = record(forward, item=ITEM, own=own, optimizer=adam)
    assert recording.tables["item"].optimizer is adam and recording.tables["own"].optimizer is sgd
    assert dict(adam.options) == {"lr": 0.5, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0}
    assert "weight_decay" not in dict(gr.optim.AdamW().options)  # the default differs on tables and parameters


def test_rules_about_rows_are_the_tables():
    ruled = gr.Table(
        "ruled", dim=2, bounded=100, evict="lfu", ttl=7, admit_after=3, optimizer=gr.optim.RowWiseAdagrad(0.1)
    )

    def forward(batch):
        return ITEM(batch.user), ruled(batch.user)

    recording, _, _ = record(forward, item=ITEM, ruled=ruled)
    rules = recording.tables["ruled"].rules
    assert (rules.bounded, rules.evict, rules.ttl, rules.admit_after) == (100, "lfu", 7, 3)
    assert recording.tables["item"].rules.bounded is None and rules.ttl_seconds is None
    month = gr.Table("month", dim=2, ttl=timedelta(days=30)).rules
    assert (month.ttl_steps, month.ttl_seconds) == (None, 2592000)
    assert dict(recording.tables["ruled"].optimizer.options)["eps"] == 1e-10


def test_tables_say_how_they_store_values():
    half = gr.Table("half", dim=2, dtype="bf16", rounding="stochastic")

    def forward(batch):
        return ITEM(batch.user), half(batch.user)

    recording, _, _ = record(forward, item=ITEM, half=half)
    storage = recording.tables["half"].storage
    assert (storage.dtype, storage.rounding) == ("bf16", "stochastic")
    assert recording.tables["item"].storage.dtype == "f32"
    for wrong, words in (
        ({"dtype": "fp8"}, "'dtype' of table 't' must be one of f32, bf16, got 'fp8'"),
        ({"dtype": "bf16", "rounding": "up"}, "'rounding' of table 't' must be one of nearest, stochastic, got 'up'"),
        ({"rounding": "nearest"}, "'rounding' of table 't' says how bf16 is stored, but its 'dtype' is f32"),
        ({"hot_after": 3}, "'hot_after' of table 't' says which rows of bf16 keep float32, but its 'dtype' is f32"),
        ({"dtype": "bf16", "hot_after": 0}, "'hot_after' of table 't' must be at least 1, got 0"),
        ({"dtype": "bf16", "hot_after": True}, "'hot_after' of table 't' must be a whole number, got True"),
        ({"dtype": "bf16", "hot_after": 2, "frozen": True}, "table 't' is frozen: it takes no optimizer, and no rule"),
    ):
        with pytest.raises((TypeError, ValueError), match=words):
            gr.Table("t", dim=2, **wrong)


def test_whole_numbers_beside_a_parameter_are_floats():
    scale = gr.Parameter((3,), gr.init.ones())

    def forward(batch):
        kept = gr.where(batch.history.price > 0.0, scale, 0)
        return [scale * 2, 1 - scale, gr.maximum(scale, 0), gr.minimum(1, scale), kept]

    _, ops, values = record(forward, scale=scale)
    assert all(value.dtype == gr.float32 for value in values)
    assert all(one.attributes["value"].type.element == "float32" for one in ops["constant"])


def test_whole_numbers_beside_a_list_of_floats_are_floats():
    schema = gr.Schema({"user": gr.int64, "score": [gr.float32]})
    _, _, value = record(lambda batch: gr.maximum(batch.score, 0), schema)
    assert value.dtype == gr.float32
