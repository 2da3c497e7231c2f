"""Products that `gr.autocast` rounds."""

import genrec as gr
import pytest
from genrec import nn
from recorder import ITEM, record
from test_recording import catalogue


def rounded(ops):
    """Names of the recorded ops with `bf16`, in order of name."""
    return sorted(name for name, found in ops.items() for op in found if op.attributes.get("bf16"))


def test_every_product_inside_is_marked_and_nothing_else():
    layer, block, cross = nn.Linear(3, 3), nn.HSTUBlock(3), nn.CrossNetwork(3, 2)

    def forward(batch):
        x = ITEM(batch.history.item)
        with gr.autocast():
            x = block(nn.relu(layer(x)))
            y = cross(nn.layer_norm(x))
            nn.dot_interaction([x, y])
            nn.cross_attention(x, x, x)
        return layer(x)

    _, ops, _ = record(forward, layer=layer, block=block, cross=cross)
    assert rounded(ops) == [
        "cross_attention", "cross_layer", "cross_layer", "dot_interaction", "hstu_block", "linear",
    ]  # fmt: skip
    assert len(ops["linear"]) == 2 and "bf16" not in ops["linear"][1].attributes


def test_a_sampled_softmax_is_a_product_and_other_losses_are_none():
    items = catalogue()

    def forward(batch):
        x = ITEM(batch.history.item)
        with gr.autocast():
            gr.loss.sampled_softmax(x, batch.history.item, ITEM.l2_normalized(), items, negatives=4, name="rounded")
            gr.loss.full_softmax(x, batch.history.item, ITEM.l2_normalized(), items, max_items=8, name="scores")
            gr.loss.in_batch_softmax(x, x, batch.history.item, name="in_batch")
        gr.loss.sampled_softmax(x, batch.history.item, ITEM.l2_normalized(), items, negatives=4, name="exact")

    _, ops, _ = record(forward, item=ITEM, catalogue=items)
    assert rounded(ops) == ["sampled_softmax"]
    assert ["bf16" in op.attributes for op in ops["sampled_softmax"]] == [True, False]


def test_blocks_nest_and_end_with_an_error():
    layer = nn.Linear(3, 3)

    def forward(batch):
        x = ITEM(batch.history.item)
        with gr.autocast():
            with gr.autocast(enabled=False):
                x = layer(x)
            x = layer(x)
            with pytest.raises(ZeroDivisionError), gr.autocast(enabled=False):
                raise ZeroDivisionError
            layer(x)

    _, ops, _ = record(forward, layer=layer)
    assert ["bf16" in op.attributes for op in ops["linear"]] == [False, True, True]


def test_enabled_is_a_bool():
    with pytest.raises(TypeError, match="gr.autocast takes True or False, got 'bf16'"), gr.autocast("bf16"):
        pass
