"""Writes a model file with a list in a list, and so on.

Usage: deep_model_file.py <file> <depth>
"""

import sys

import genrec as gr
from genrec.recording import DomainDeclaration


class Deep(gr.Model):
    """Gives out one number per request."""

    def forward(self, batch):
        gr.output(x=batch.x)


def main():
    path, depth = sys.argv[1], int(sys.argv[2])
    recording = gr.record(Deep(), gr.Schema({"x": gr.float32}))
    above = "request"
    for i in range(depth):
        # Not through a schema, which refuses a deeper one itself.
        recording.declare_domain(DomainDeclaration(f"list_{i}", "data", above, f"list_{i}"))
        above = f"list_{i}"
    gr.write_model(recording, path)


if __name__ == "__main__":
    main()
