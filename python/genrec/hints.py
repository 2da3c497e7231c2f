"""What to write in a model for what values do not have, but arrays of other libraries do."""

ELSEWHERE = {
    "T": "rows are not transposed; inner products with every item are gr.scores or gr.top_k",
    "transpose": "rows are not transposed; inner products with every item are gr.scores or gr.top_k",
    "unsqueeze": "a scalar per row becomes rows [1] by gr.concat(x)",
    "reshape": "rows are [d]: gr.concat joins them, x[:, a:b] takes columns, gr.concat(x) makes rows [1] of scalars",
    "view": "rows are [d]: gr.concat joins them, x[:, a:b] takes columns, gr.concat(x) makes rows [1] of scalars",
    "flatten": "x.tile(n) puts the rows of a list side by side",
    "float": "x.astype(gr.float32)",
    "long": "x.astype(gr.int64)",
    "int": "x.astype(gr.int64)",
    "bool": "compare: x != 0",
    "to": "x.astype(...) converts; devices are chosen by gr.compile(..., target=...)",
    "cuda": "devices are chosen by gr.compile(..., target=...)",
    "cpu": "devices are chosen by gr.compile(..., target=...)",
    "size": "x.shape is the shape of one row",
    "ndim": "x.shape is the shape of one row",
    "item": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "numpy": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "tolist": "values have no numbers while the model is recorded; gr.output(...) writes them when predicting",
    "clamp": "gr.clip(x, low, high)",
    "clip": "gr.clip(x, low, high)",
    "argmax": "of a catalogue: gr.top_k(..., k=1)",
    "backward": "losses are declared by gr.loss…; genrec differentiates them",
}
"""Help by the name of the missing attribute; `genrec.nn` adds its functions."""
