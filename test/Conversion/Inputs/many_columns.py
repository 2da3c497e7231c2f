"""A model that joins so many columns, each plus one and the same column and without what is negative; their sum."""

import sys

count = int(sys.argv[1])
rows, joined = "tensor<?xf32, #genrec.rows<@request>>", f"tensor<?x{count}xf32, #genrec.rows<@request>>"
attributes = "{init = #genrec.init<zeros, 0.0>, optimizer = #genrec.optimizer<sgd, {}>}"
lines = ["genrec.model @columns {", "  genrec.domain @request"]
lines += [f"  genrec.parameter @w : tensor<{count}x1xf32> {attributes}", "  genrec.program @all {"]
lines += ["    %request = genrec.batch : !genrec.domain<@request>"]
for name in ("shift", *(f"c{k}" for k in range(count))):
    lines += [f'    %{name} = genrec.feature %request "{name}" : (!genrec.domain<@request>) -> {rows}']
lines += [f"    %twice = genrec.add %shift, %shift : ({rows}, {rows}) -> {rows}"]
for k in range(count):
    lines += [f"    %a{k} = genrec.add %c{k}, %twice : ({rows}, {rows}) -> {rows}"]
    lines += [f"    %r{k} = genrec.relu %a{k} : {rows}"]
parts, types = ", ".join(f"%r{k}" for k in range(count)), ", ".join([rows] * count)
lines += [f"    %x = genrec.concat_columns {parts} : ({types}) -> {joined}"]
lines += [f"    %w = genrec.param @w : tensor<{count}x1xf32>"]
last = "tensor<?x1xf32, #genrec.rows<@request>>"
lines += [f"    %y = genrec.linear %x, %w : ({joined}, tensor<{count}x1xf32>) -> {last}"]
lines += [f'    genrec.output "y" %y : {last}', "  }", "}"]
print("\n".join(lines))
