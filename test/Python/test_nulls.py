"""A null row stays null through what works row by row; a null index looks nothing up."""

import genrec as gr
import pytest
from genrec import nn
from recorder import record

SCHEMA = gr.Schema({
    "id": gr.int64.nullable(), "x": gr.float32.nullable(), "vector": gr.float32.vector(2).nullable(),
    "one": gr.float32.vector(1).nullable(), "flag": gr.bool_.nullable(), "y": gr.float32, "known": gr.bool_,
    "user": gr.int64, "history": [{"item": gr.int64, "like": gr.float32.nullable()}],
})  # fmt: skip


def only_in_vector(batch):
    return gr.concat(batch.vector, batch.y, batch.y)


KEEPING = {
    "a column": lambda b: b.vector[:, 0],
    "columns": lambda b: b.vector[:, 1:],
    "hashes": lambda b: gr.multi_hash(b.id, bits=16, count=2)[:, 1],
    "row_sum": lambda b: b.vector.row_sum(),
    "row_mean": lambda b: b.vector.row_mean(),
    "row_max": lambda b: b.vector.row_max(),
    "squeeze": lambda b: b.one.squeeze(),
    "concat": only_in_vector,
    "concat of one": lambda b: gr.concat(b.x),
    "concat, fanned out": lambda b: gr.concat(b.x, b.history.like),
    "stack": lambda b: gr.stack(b.x, b.y),
    "split_rows": lambda b: gr.concat_rows(b.history.like, b.history.like).split_rows()[1],
    "softmax": lambda b: nn.softmax(b.vector),
    "dropout": lambda b: nn.dropout(b.x, 0.5),
    "l2_normalize": lambda b: nn.l2_normalize(b.vector),
    "layer_norm": lambda b: nn.layer_norm(b.vector),
    "rms_norm": lambda b: nn.rms_norm(b.vector),
    "mixture": lambda b: nn.mixture(only_in_vector(b), gr.concat(b.y, b.y)),
    "clip": lambda b: gr.clip(b.x, 0, 1),
    "where, of a null condition": lambda b: gr.where(b.x > 0.0, 1.0, 0.0),
    "where, of a null value": lambda b: gr.where(b.known, b.x, b.y),
    "where, per element": lambda b: gr.where(b.vector > 0.0, 1.0, 0.0),
    "a loss of a null label": lambda b: gr.loss.bce_with_logits(b.y, b.x),
    "a loss of a null class": lambda b: gr.loss.softmax_cross_entropy(gr.concat(b.y, b.y), b.id),
}


@pytest.mark.parametrize("name", KEEPING)
def test_a_null_row_stays_null(name):
    _, _, value = record(KEEPING[name], SCHEMA)
    assert value.valid is not None, value
    assert value.valid.domain is value.domain and value.valid.shape == () and value.valid.dtype == gr.bool_


DROPPING = {
    "a lookup": lambda b: gr.Table("t", dim=2)(b.id),
    "filled": lambda b: gr.fill_missing(b.x, 0.0),
    "a filled condition": lambda b: gr.where(gr.fill_missing(b.x > 0.0, False), 1.0, 0.0),
    "a choice by what is valid": lambda b: gr.where(b.x.valid, b.x, 0.0),
}


@pytest.mark.parametrize("name", DROPPING)
def test_what_has_no_nulls(name):
    _, _, value = record(DROPPING[name], SCHEMA)
    assert value.valid is None


def test_a_layer_has_no_nulls():
    layer = nn.Linear(2, 2)
    _, _, value = record(lambda b: layer(gr.concat(b.x, b.y)), SCHEMA, layer=layer)
    assert value.valid is None


def test_a_choice_is_null_where_what_it_takes_is():
    _, ops, value = record(lambda b: gr.where(b.known, b.x, b.y), SCHEMA)
    known, true = ops["feature"][0].results[0], ops["constant"][0]
    assert true.attributes["value"].numbers == (1,)
    taken = next(op for op in ops["select"] if op.results[0] is value.valid._result)
    assert taken.operands == [known, ops["feature_valid"][0].results[0], true.results[0]]


def test_a_null_index_of_an_embedding_reads_zeros():
    weekday = nn.Embedding(7, 4)
    _, ops, value = record(lambda b: weekday(b.id), SCHEMA, weekday=weekday)
    chosen = ops["select"][0]
    assert value._result is chosen.results[0] and value.valid is None
    assert chosen.operands[:2] == [ops["feature_valid"][0].results[0], ops["embedding"][0].results[0]]


def test_a_loss_of_a_null_item_is_null():
    item = gr.Table("item", dim=2)
    items = gr.catalogue("items.parquet", id="item", schema=gr.Schema({"item": gr.int64}, root="items"))
    loss = gr.loss.sampled_softmax
    _, ops, value = record(lambda b: loss(item(b.user), b.id, item, items, negatives=2), SCHEMA, item=item, items=items)
    assert value.valid._result is ops["feature_valid"][0].results[0]
