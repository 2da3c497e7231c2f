"""Front end of genrec: record a model, write its file, compile it and drive the binary."""
