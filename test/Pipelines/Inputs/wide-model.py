"""Prints a ranking model with many columns, written naively: a table per feature, an op per column.

usage: wide-model.py <columns>

Of 660 columns 480 are ids with a table and at least one transform each (hash, hash and mod, bucketize, mod, a hashed
string), of dimensions 4 to 64; the others are dense. A third of the columns belongs to requests, half to their
impressions, the rest to a history that is summed per request. Two layers, one loss.
"""

import sys

DIMS = (4, 8, 16, 32, 64)
INIT = "init = #genrec.init<uniform, 0.05>, optimizer = #genrec.optimizer<adagrad, {lr = 0.05}>"
HIDDEN = 64


class Model:
    """Collects declarations and ops."""

    def __init__(self) -> None:
        self.declarations: list[str] = []
        self.ops: list[str] = []

    def feature(self, name: str, domain: str, element: str) -> str:
        prefix = {"request": "", "impression": "impressions.", "history": "history."}[domain]
        rows = f"tensor<?x{element}, #genrec.rows<@{domain}>>"
        self.ops.append(f'%{name} = genrec.feature %{domain} "{prefix}{name}" : (!genrec.domain<@{domain}>) -> {rows}')
        return rows

    def ids(self, number: int, domain: str) -> str:
        """Column `number` and its transforms; returns the value of its ids."""
        name, ids = f"c{number}", f"tensor<?xi64, #genrec.rows<@{domain}>>"
        kind = number % 5
        if kind == 0:
            rows = self.feature(name, domain, "!genrec.string")
            self.ops.append(
                f"%{name}_id = genrec.hash xxh3 %{name} {{bits = 40 : i64, seed = 0 : i64}} : ({rows}) -> {ids}"
            )
        elif kind == 1:
            rows = self.feature(name, domain, "f32")
            edges = ", ".join(f"{(number % 7) + 0.5 * edge:.6f}" for edge in range(15))
            self.ops.append(
                f"%{name}_id = genrec.bucketize %{name} {{edges = array<f64: {edges}>}} : ({rows}) -> {ids}"
            )
        elif kind == 2:
            rows = self.feature(name, domain, "i64")
            self.ops.append(f"%{name}_id = genrec.mod %{name} {{divisor = {1000 + number} : i64}} : ({rows}) -> {ids}")
        else:
            rows = self.feature(name, domain, "i64")
            self.ops.append(
                f"%{name}_h = genrec.hash xxh3 %{name} {{bits = 62 : i64, seed = 0 : i64}} : ({rows}) -> {ids}"
            )
            self.ops.append(f"%{name}_id = genrec.mod %{name}_h {{divisor = {5000 + number} : i64}} : ({ids}) -> {ids}")
        return ids

    def lookup(self, number: int, domain: str) -> tuple[str, int]:
        dim, ids = DIMS[number // 5 % len(DIMS)], self.ids(number, domain)
        self.declarations.append(f"genrec.table @t{number} dim {dim} {{{INIT}}}")
        rows = f"tensor<?x{dim}xf32, #genrec.rows<@{domain}>>"
        self.ops.append(f"%c{number}_x = genrec.lookup %c{number}_id in @t{number} : ({ids}) -> {rows}")
        return f"%c{number}_x", dim


def main() -> None:
    columns = int(sys.argv[1])
    model = Model()
    parts: list[tuple[str, str]] = []
    width = 0
    for number in range(columns):
        place = number * 6 // columns
        domain = "request" if place < 2 else "impression" if place < 5 else "history"
        if number % 11 < 8:
            value, dim = model.lookup(number, domain)
            rows = f"tensor<?x{dim}xf32, #genrec.rows<@{domain}>>"
        else:
            rows, value, dim = model.feature(f"c{number}", domain, "f32"), f"%c{number}", 1
        shape = f"{dim}xf32" if dim > 1 else "f32"
        if domain == "history":
            pooled = f"tensor<?x{shape}, #genrec.rows<@request>>"
            model.ops.append(
                f"%c{number}_p = genrec.pool sum {value} to %request : ({rows}, !genrec.domain<@request>) -> {pooled}"
            )
            value, rows, domain = f"%c{number}_p", pooled, "request"
        if domain == "request":
            fanned, types = f"tensor<?x{shape}, #genrec.rows<@impression>>", f"({rows}, !genrec.domain<@impression>)"
            model.ops.append(f"%c{number}_f = genrec.fanout {value} to %impression : {types} -> {fanned}")
            value, rows = f"%c{number}_f", fanned
        parts.append((value, rows))
        width += dim
    joined = f"tensor<?x{width}xf32, #genrec.rows<@impression>>"
    hidden = f"tensor<?x{HIDDEN}xf32, #genrec.rows<@impression>>"
    one, logit = "tensor<?x1xf32, #genrec.rows<@impression>>", "tensor<?xf32, #genrec.rows<@impression>>"
    values, types = ", ".join(value for value, _ in parts), ", ".join(rows for _, rows in parts)
    model.ops.append(f"%all = genrec.concat_columns {values} : ({types}) -> {joined}")
    for name, shape in (("w0", f"{width}x{HIDDEN}xf32"), ("w1", f"{HIDDEN}x1xf32")):
        model.declarations.append(
            f"genrec.parameter @{name} : tensor<{shape}> {{init = #genrec.init<xavier_uniform, 1.0>, "
            "optimizer = #genrec.optimizer<adam, {lr = 0.001}>}"
        )
        model.ops.append(f"%{name} = genrec.param @{name} : tensor<{shape}>")
    model.ops += [
        f"%h = genrec.linear %all, %w0 : ({joined}, tensor<{width}x{HIDDEN}xf32>) -> {hidden}",
        f"%r = genrec.relu %h : {hidden}",
        f"%o = genrec.linear %r, %w1 : ({hidden}, tensor<{HIDDEN}x1xf32>) -> {one}",
        f"%logit = genrec.row_reduce sum %o : ({one}) -> {logit}",
        f'%label = genrec.feature %impression "impressions.label" : (!genrec.domain<@impression>) -> {logit}',
        f"%bce = genrec.bce_with_logits %logit, %label : ({logit}, {logit}) -> {logit}",
        f'genrec.loss "bce" %bce : {logit}',
        f'genrec.output "score" %logit : {logit}',
    ]
    print("genrec.model @wide {\n  genrec.domain @request")
    print('  genrec.domain @impression parent @request {column = "impressions"}')
    print('  genrec.domain @history parent @request {column = "history"}')
    print("\n".join("  " + line for line in model.declarations))
    print("  genrec.program @main {")
    print("    %request, %impression, %history = genrec.batch")
    print("        : !genrec.domain<@request>, !genrec.domain<@impression>, !genrec.domain<@history>")
    print("\n".join("    " + line for line in model.ops))
    print("  }\n}")


if __name__ == "__main__":
    main()
