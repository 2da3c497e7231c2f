"""Writes a model that is deep in one way.

Usage: deep_model.py domains|upward|chain|vectors|scalars|products <depth>
"""

import sys

ROWS = "#genrec.rows<@request>"
NUMBERS, IDS, VECTORS = f"tensor<?xf32, {ROWS}>", f"tensor<?xi64, {ROWS}>", f"tensor<?x4xf32, {ROWS}>"
TRAINED = "init = #genrec.init<constant, 0.5>, optimizer = #genrec.optimizer<sgd, {lr = 1.0e-3}>"


def domains(depth, upward):
    """A list in a list, and so on; the innermost declared first where `upward`."""
    lines = [f'  genrec.domain @d{i} parent @d{i - 1} {{column = "c{i}"}}' for i in range(1, depth + 1)]
    lines = ["  genrec.domain @d0", *lines]
    print("\n".join(reversed(lines) if upward else lines))
    print(f"""  genrec.program @main {{
    %top, %rows = genrec.batch : !genrec.domain<@d0>, !genrec.domain<@d{depth}>
    %x = genrec.feature %top "x" : (!genrec.domain<@d0>) -> tensor<?xf32, #genrec.rows<@d0>>
    %y = genrec.fanout %x to %rows : (tensor<?xf32, #genrec.rows<@d0>>, !genrec.domain<@d{depth}>) -> tensor<?xf32, #genrec.rows<@d{depth}>>
    genrec.output "y" %y : tensor<?xf32, #genrec.rows<@d{depth}>>
  }}""")


def chain(step, kind, depth):
    """Ops each of which reads what the one before it made."""
    print(f"""  genrec.domain @request
  genrec.parameter @number : tensor<f32> {{{TRAINED}}}
  genrec.parameter @matrix : tensor<4x4xf32> {{{TRAINED}}}
  genrec.table @item dim 4 {{{TRAINED}}}
  genrec.program @main {{
    %request = genrec.batch : !genrec.domain<@request>
    %x = genrec.feature %request "x" : (!genrec.domain<@request>) -> {NUMBERS}
    %id = genrec.feature %request "id" : (!genrec.domain<@request>) -> {IDS}
    %number = genrec.param @number : tensor<f32>
    %matrix = genrec.param @matrix : tensor<4x4xf32>
    %vector = genrec.lookup %id in @item : ({IDS}) -> {VECTORS}
    %rows = genrec.mul %x, %number : ({NUMBERS}, tensor<f32>) -> {NUMBERS}
    %v0 = {step.format(last="%" + kind)}""")
    for i in range(1, depth):
        print(f"    %v{i} = {step.format(last=f'%v{i - 1}')}")
    last = f"%v{depth - 1}"
    if kind == "vector":
        print(f"    %y = genrec.row_reduce sum {last} : ({VECTORS}) -> {NUMBERS}")
    elif kind == "number":
        print(f"    %y = genrec.mul %x, {last} : ({NUMBERS}, tensor<f32>) -> {NUMBERS}")
    else:
        print(f"    %y = genrec.neg {last} : {NUMBERS}")
    print(f"""    genrec.loss "l" %y : {NUMBERS}
    genrec.output "y" %y : {NUMBERS}
  }}""")


CHAINS = {
    "chain": (f"genrec.tanh {{last}} : {NUMBERS}", "rows"),
    "vectors": (f"genrec.add {{last}}, %vector : ({VECTORS}, {VECTORS}) -> {VECTORS}", "vector"),
    "scalars": ("genrec.tanh {last} : tensor<f32>", "number"),
    "products": (f"genrec.linear {{last}}, %matrix : ({VECTORS}, tensor<4x4xf32>) -> {VECTORS}", "vector"),
}


def main():
    kind, depth = sys.argv[1], int(sys.argv[2])
    print("genrec.model @m {")
    if kind in ("domains", "upward"):
        domains(depth, kind == "upward")
    else:
        chain(*CHAINS[kind], depth)
    print("}")


if __name__ == "__main__":
    main()
