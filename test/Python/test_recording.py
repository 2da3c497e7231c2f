"""What a model records: ops, declarations, names and places."""

import genrec as gr
import numpy
import pytest
from genrec import nn
from genrec.recording import Enum
from model_writing import write_ranker
from recorder import ITEM, record


def test_features_and_moves_are_recorded_once():
    def forward(batch):
        event = batch.history.truncate(5)
        first = batch.history.item.truncate(5)
        assert first is event.item and first.domain is event
        assert batch.history is batch["history"] and batch.history.item is batch.history["item"]
        assert event.truncate(9) is event
        assert batch.history.truncate(9).truncate(5) is event
        return batch.history.truncate(5, keep="first") is not event

    _, ops, kept = record(forward)
    assert kept
    assert [len(ops[name]) for name in ("truncate", "derive")] == [3, 1]
    assert [op.attributes["count"] for op in ops["truncate"]] == [5, 9, 5]
    assert [op.attributes["column"] for op in ops["feature"]] == ["history.item", "user"]


def test_what_is_not_used_is_not_declared():
    recording, ops, _ = record(lambda batch: None)
    assert list(recording.domains) == ["request"]
    assert [result.type.domain for result in ops["batch"][0].results] == ["request"]


def test_domains_of_a_batch_are_parents_first():
    recording, ops, _ = record(lambda batch: batch.history.tags.tag)
    assert list(recording.domains) == ["request", "history", "tags"]
    declarations = [(one.parent, one.column) for one in recording.domains.values()]
    assert declarations == [("", ""), ("request", "history"), ("history", "history.tags")]
    assert [result.type.domain for result in ops["batch"][0].results] == ["request", "history", "tags"]


def test_a_domain_gives_way_to_a_table_of_its_name():
    table = gr.Table("interest", dim=2)
    recording, ops, _ = record(lambda batch: table(batch.interest).mean(), table=table)
    assert "interest" in recording.tables and "interest_rows" in recording.domains
    assert ops["feature"][0].attributes == {"column": "interest", "padding_id": 0}
    assert ops["lookup"][0].results[0].type.domain == "interest_rows"


def test_a_padded_feature_of_a_list_is_read_wherever_its_list_is_used():
    schema = gr.Schema({"user": gr.int64, "history": [{"item": gr.int64.padded(0), "tags": [{"tag": gr.int64}]}]})
    _, ops, _ = record(lambda batch: batch.history.length(), schema=schema)
    assert ops["feature"][0].attributes == {"column": "history.item", "padding_id": 0}
    _, ops, _ = record(lambda batch: batch.history.tags.tag, schema=schema)
    assert [op.attributes["column"] for op in ops["feature"]] == ["history.item", "history.tags.tag", "user"]
    _, ops, _ = record(lambda batch: batch.user, schema=schema)
    assert [op.attributes["column"] for op in ops["feature"]] == ["user"]


def test_random_streams_follow_from_the_ops_number():
    def forward(batch):
        x = ITEM(batch.history.item)
        return nn.dropout(nn.dropout(x, 0.5), 0.25)

    _, ops, _ = record(forward, item=ITEM)
    assert [op.attributes["stream"] for op in ops["dropout"]] == [256 * op.number for op in ops["dropout"]]
    assert ops["dropout"][0].number + 1 == ops["dropout"][1].number


def test_dropout_of_rate_0_is_nothing():
    _, ops, _ = record(lambda batch: nn.dropout(batch.history.price, 0.0))
    assert "dropout" not in ops


def test_nulls_travel_as_validity():
    def forward(batch):
        tag = batch.history.tags.tag
        moved = gr.mod(tag, 7).lead(1)
        return tag, moved, moved.first(), moved.sum(), batch.age.fanout(batch.history), moved + tag

    _, ops, (tag, moved, first, total, age, both) = record(forward)
    assert tag.valid._result is ops["feature_valid"][0].results[0]
    # The null of a row goes with it, and reads false past the end of the list.
    assert moved.valid._result is ops["lead"][1].results[0]
    assert ops["lead"][1].operands == [tag.valid._result]
    assert first.valid.domain is first.domain and total.valid is None
    assert age.valid._result is ops["fanout"][0].results[0] and age.dtype == gr.int32
    assert both.valid._result is ops["select"][0].results[0]


def test_a_null_id_is_looked_up_as_nothing():
    _, ops, _ = record(lambda batch: ITEM(batch.age), item=ITEM)
    cast, lookup = ops["cast"][0], ops["lookup"][0]
    assert cast.results[0].type.element == "int64"
    assert lookup.operands == [cast.results[0], ops["feature_valid"][0].results[0]]


def test_concat_fans_out_to_the_deepest():
    def forward(batch):
        wide = gr.concat(batch.history.price, ITEM(batch.user), ITEM(batch.history.tags.tag))
        assert wide.domain is batch.history.tags and wide.shape == (7,)
        assert gr.concat([batch.history.price]).shape == (1,)

    _, ops, _ = record(forward, item=ITEM)
    assert [op.results[0].type.domain for op in ops["fanout"]] == ["tags", "tags"]
    assert [len(op.operands) for op in ops["concat_columns"]] == [3, 1]


def test_rows_are_joined_and_split():
    def forward(batch):
        joined = gr.concat_rows(ITEM(batch.user), ITEM(batch.history.item), ITEM(batch.interest))
        again = gr.concat_rows([ITEM(batch.user), ITEM(batch.history.item), ITEM(batch.interest)])
        assert again.domain is joined.domain and joined.domain._parent is batch
        user, event, interest = nn.relu(joined).split_rows()
        assert (user.domain, event.domain, interest.domain) == (batch, batch.history, batch.interest)
        assert gr.concat_rows(batch.history.item, batch.history.item).domain._parent is batch

    recording, ops, _ = record(forward, item=ITEM)
    assert [op.attributes["part"] for op in ops["split_rows"]] == [0, 1, 2]
    assert recording.domains["joined_rows"].kind == "derived"
    assert len(ops["concat_domains"]) == 2


def test_columns_scalars_and_comparisons():
    def forward(batch):
        x = ITEM(batch.history.item)
        assert (x[:, 1:].shape, x[:, -1].shape, x.row_max().shape, (x[:, :1]).squeeze().shape) == ((2,), (), (), ())
        assert (x * batch.history.price).shape == (3,)
        assert (1 - x).shape == (3,) and (x + [1.0, 2.0, 3.0]).shape == (3,)
        assert (batch.history.item == 3).dtype == gr.bool_
        return gr.where(x > 0, x, 0.0)

    _, ops, _ = record(forward, item=ITEM)
    assert [op.attributes["offset"] for op in ops["slice_columns"]] == [1, 2, 0]
    kinds = [op.attributes["kind"].value for op in ops["compare"]]
    assert kinds == ["eq", "gt"]
    constants = [op.attributes["value"] for op in ops["constant"]]
    assert [(one.type.element, one.numbers) for one in constants] == [
        ("float32", (1.0,)), ("float32", (1.0, 2.0, 3.0)), ("int64", (3,)), ("float32", (0.0,)), ("float32", (0.0,)),
    ]  # fmt: skip


def test_numbers_of_numpy_and_powers():
    def forward(batch):
        x = batch.history.price
        assert (numpy.float32(2) * x).shape == (numpy.float64(1) - x).shape == ()
        assert (numpy.float32(2) > x).dtype == gr.bool_
        return x**5, x**0.5, x**-0.5, x**1

    _, ops, kept = record(forward)
    assert [len(ops[name]) for name in ("sub", "compare", "sqrt", "rsqrt")] == [1, 1, 1, 1]
    assert len(ops["mul"]) == 1 + 3  # x2 = x * x, x4 = x2 * x2, x4 * x
    assert kept[3] is not None and len(ops["constant"]) == 3


def catalogue():
    return gr.catalogue("shop/items.parquet", schema=gr.Schema({"item": gr.int64, "year": gr.int64}), id="item")


def test_loss_and_metrics_share_a_catalogue():
    items = catalogue()
    query = nn.Linear(3, 3)

    def forward(batch):
        vectors = ITEM.l2_normalized()
        x = query(ITEM(batch.history.item))
        gr.loss.sampled_softmax(x, batch.history.item.lead(), vectors, items, negatives=4, shared=True)
        found = gr.top_k(x.last(), ITEM.l2_normalized(), items, k=3, exclude=batch.history.truncate(2).item)
        gr.metric.ranking(found, target=batch.user, at=(1, 3))
        gr.metric.ranking(gr.rank(x.last(), batch.user, vectors, items), name="all")
        gr.output(found=found)
        assert found.ids.shape == found.scores.shape == (3,)

    recording, ops, _ = record(forward, item=ITEM, query=query, catalogue=items)
    assert recording.domains["items"].source == "shop/items.parquet"
    # The items' vectors are made once for all of them.
    assert len(ops["catalogue"]) == 1 and len(ops["l2_normalize"]) == 1
    assert [op.attributes.get("allow_missing") for op in ops["resolve"]] == [None, True, None]
    assert ops["loss"][0].operands[1] is ops["lead"][0].results[1]
    assert [op.attributes["name"] for op in ops["metric"]] == ["ranking", "all"]
    assert [op.attributes["note"] for op in ops["metric"]] == [
        "excluded: the 2 latest of 'history'", "nothing excluded",
    ]  # fmt: skip
    assert [op.attributes["name"] for op in ops["output"]] == ["found", "found_score", "user"]


def test_items_may_be_any_function_of_the_catalogue():
    items = catalogue()

    def tower(ids):
        return ITEM(ids) + ITEM(items.year)

    def forward(batch):
        gr.top_k(ITEM(batch.user), tower, items, k=1)
        gr.top_k(ITEM(batch.user), ITEM(items.item) * 2.0, items, k=1)

    _, ops, _ = record(forward, item=ITEM)
    assert len(ops["top_k"]) == 2 and len(ops["lookup"]) == 5


def test_labels_are_checked_where_they_come_from():
    def forward(batch):
        logit = ITEM(batch.user).row_sum()
        age = batch.age.astype(gr.int64)
        gr.loss.bce_with_logits(logit, batch.age, weight=logit)
        gr.loss.bce_with_logits(logit, batch.age.valid)
        gr.loss.softmax_cross_entropy(ITEM(batch.user), age)
        gr.loss.softmax_cross_entropy(gr.scores(ITEM(batch.user), ITEM, items, max_items=9), age)
        gr.loss.mse(logit, batch.age)
        return batch.age, age, logit

    items = catalogue()
    _, ops, (column, label, logit) = record(forward, item=ITEM)
    first, second, third = ops["require_range"]  # a bool is 0 or 1 by itself, any number has a squared error
    # The column, not what it was converted to; nulls and rows without weight are left out.
    assert first.operands == [column._result, logit._result, column.valid._result]
    assert first.segments == (1, 1, 1, 0)
    assert first.attributes == {"what": "the label of the loss 'loss'", "min": 0.0, "max": 1.0}
    assert second.operands[0] is label._result and second.segments == (1, 0, 1, 0)
    assert [op.attributes["max"] for op in (second, third)] == [2.0, 8.0]
    assert third.segments == (1, 0, 1, 1) and third.operands[2].type.domain == "items"


def test_several_targets_are_ranked_per_list():
    def forward(batch):
        found = gr.top_k(ITEM(batch.user), ITEM, catalogue(), k=3)
        gr.metric.ranking(found, target=batch.history.item, at=(1,), weight=batch.user.astype(gr.float32))
        gr.metric.list_ranking(batch.history.price, batch.history.item == 3, at=(2,), name="shown")
        return found

    _, ops, found = record(forward, item=ITEM)
    ranked, shown = ops["metric"]
    assert ranked.attributes["per_list"] and shown.attributes["per_list"]
    assert ranked.segments == (1, 0, 0, 0, 1) and shown.segments == (1, 0, 0, 0, 0)
    assert ops["rank"][0].results[0].type.domain == "history"
    assert ops["rank_in_list"][0].operands[1] is ops["cast"][-1].results[0]
    assert found.ids.elements_valid is found.scores.elements_valid


def test_outputs_keep_nulls_and_domains():
    def forward(batch):
        gr.output(age=batch.age, price=batch.history.price)

    _, ops, _ = record(forward)
    age, price, _ = ops["output"]
    assert len(age.operands) == 2 and age.operands[1].type.element == "bool"
    assert len(price.operands) == 1 and price.operands[0].type.domain == "history"


def test_full_softmax_needs_the_number_of_items():
    items = catalogue()

    def forward(batch):
        with pytest.raises(gr.ModelError, match="its number of items is not known"):
            gr.loss.full_softmax(ITEM(batch.user), batch.user, ITEM, items)
        gr.loss.full_softmax(ITEM(batch.user), batch.user, ITEM, items, temperature=0.5, max_items=9)

    _, ops, _ = record(forward, item=ITEM)
    assert ops["scores"][0].results[0].type.shape == (9,)
    assert ops["softmax_cross_entropy"][0].operands[1] is ops["resolve"][0].results[0]


def test_losses_weigh_rows():
    def forward(batch):
        price = batch.history.price
        gr.loss.bce_with_logits(price, batch.history.item > 3, weight=price, scale=0.5)
        gr.loss.bce_with_logits(price, batch.age.fanout(batch.history))
        gr.loss.mean(price, name="price")

    _, ops, _ = record(forward)
    assert [op.segments for op in ops["loss"]] == [(1, 1, 0), (1, 0, 1), (1, 0, 0)]
    assert [op.attributes["name"] for op in ops["loss"]] == ["loss", "loss_2", "price"]
    assert ops["loss"][0].attributes["scale"] == 0.5


def test_places_and_names_are_the_users(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = write_ranker(
        tmp_path,
        "first, second = self.item(batch.history.item), self.user(batch.user)\n"
        "logit = (self.score(first)\n"
        "    .squeeze())\n"
        "logit += 1.0\n"
        "ß = nn.relu(logit); gr.output(ß=ß)",
    )
    recording = gr.record(module.Ranker(), module.schema)
    places = {(op.name, op.place.name): op.place for op in recording.ops}

    def at(name, variable):
        place = places[name, variable]
        return (place.shown_file, place.line, place.column, place.end_column)

    assert at("lookup", "first") == ("ranker.py", 21, 25, 54)
    assert at("lookup", "second") == ("ranker.py", 21, 56, 77)
    assert at("row_reduce", "logit") == ("ranker.py", 23, 14, 23)  # the call within the expression of two lines
    assert at("add", "logit") == ("ranker.py", 24, 9, 21)
    assert at("relu", "ß") == ("ranker.py", 25, 13, 27)
    assert at("output", "ß") == ("ranker.py", 25, 29, 43)
    assert places["param", "score.weight"].line == 22
    assert recording.tables["item"].place.line == 14


def test_an_edited_file_is_read_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("before", "afterwards"):
        module = write_ranker(tmp_path, f"{name} = nn.relu(self.user(batch.user)); gr.output(x={name})")
        recording = gr.record(module.Ranker(), module.schema)
        assert [op.place.name for op in recording.ops if op.name == "relu"] == [name]


def test_modules_check_and_compute(tmp_path):
    block = nn.SelfAttention(3, heads=1, qk=4, v=2, window=5, bias=nn.RelativePosition(6))
    parts = {
        "block": block,
        "mlp": nn.MLP([3, 5, 1], activation="silu", dropout=0.5, final="sigmoid"),
        "norm": nn.RMSNorm(3),
        "table": nn.Embedding(7, 3),
        "place": nn.PositionEmbedding(7, 3, from_end=True),
    }

    def forward(batch):
        x = parts["table"](batch.history.item) + parts["place"](batch.history)
        return parts["mlp"](parts["norm"](block(x))).squeeze()

    recording, ops, kept = record(forward, **parts)
    assert kept.shape == ()
    attention = ops["attention"][0]
    assert attention.segments == (1, 1, 1, 1, 0, 0, 0) and attention.attributes["scale"] == 0.5
    assert recording.parameters["block.bias.weight"].shape == (11,)
    assert ops["position"][0].attributes == {"from_end": True}
    assert [op.name for op in recording.ops if op.name in ("silu", "dropout", "sigmoid")] == [
        "silu", "dropout", "sigmoid",
    ]  # fmt: skip


def test_a_padded_list_has_nulls_in_its_new_rows():
    def forward(batch):
        long = batch.history.pad(3, side="front")
        assert batch.history.item.pad(3, side="front") is long.item and batch.history.pad(3, side="front") is long
        return long.item

    _, ops, item = record(forward)
    assert item.valid is not None and item.valid.domain is item.domain
    assert [op.attributes for op in ops["pad"]] == [{"count": 3, "side": Enum("pad_side", "front")}]
    assert len(ops["derive"]) == 2  # the ids, and which of them are there


def test_a_cross_of_two_lists_has_a_row_per_pair():
    def forward(batch):
        crossed = gr.cross(batch.history.item, batch.interest.value, batch.user, bits=20)
        pairs = gr.pairs(batch.history, batch.interest)
        assert crossed.domain is pairs and pairs._parent is batch.history
        again = gr.cross(batch.history.item, batch.history.item, bits=20)
        assert again.domain is batch.history
        return crossed

    recording, ops, crossed = record(forward)
    assert len(ops["pair_domains"]) == 1 and len(ops["pair_rows"]) == 1 and len(ops["fanout"]) == 2
    assert recording.domains[crossed.domain._name].parent == "history"


def test_strings_are_hashed_before_they_are_crossed():
    schema = gr.Schema({"name": gr.string, "city": gr.string})

    class Crossing(gr.Model):
        def forward(self, batch):
            gr.output(x=gr.cross(batch.name, batch.city, bits=30, seed=4))

    ops = gr.record(Crossing(), schema).ops
    assert [op.attributes["bits"] for op in ops if op.name == "hash"] == [63, 63]
    assert next(op for op in ops if op.name == "cross").attributes["seed"] == 4


def test_time_deltas_are_compared_in_seconds():
    _, ops, hours = record(lambda batch: gr.time_delta(batch.user, 7, unit=3600.0, edges=[1, 24]))
    assert hours.dtype.name == "int64"
    assert ops["bucketize"][0].attributes["edges"] == (3600.0, 86400.0)


def test_row_functions_are_ops():
    @gr.row_function
    def leaky(x, slope=0.1):
        """What it does."""
        return gr.where(x > 0.0, x, x * slope)

    layers = nn.MLP([1, 4, 1], activation=leaky)
    _, ops, _ = record(lambda batch: layers(gr.concat(batch.history.price)), layers=layers)
    assert leaky.__name__ == "leaky" and leaky.__doc__ == "What it does."
    assert len(ops["select"]) == 1 and len(ops["compare"]) == 1


def test_a_trained_variance_weighs_a_loss():
    s = nn.Parameter((), gr.init.zeros())
    _, ops, x = record(lambda batch: gr.loss.mean(batch.history.price, name="price", log_variance=s), s=s)
    assert ops["loss"][0].operands[0] is not x._result and len(ops["exp"]) == 1
