"""Configuration of the lit tests. Loaded by lit.site.cfg.py of a build folder, which sets the folders used here."""

import glob
import os
import shutil

import lit.formats
import lit.util

config.name = "genrec"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Simt", "Runtime", "Unit", "Python", "EndToEnd"]
config.test_source_root = os.path.join(config.genrec_source_dir, "test")
config.test_exec_root = os.path.join(config.genrec_build_dir, "test")

# Our tools first, then FileCheck, not, split-file and mlir-opt of the LLVM that genrec is built with.
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.genrec_build_dir, "bin"), config.llvm_tools_dir, os.environ.get("PATH", "")]
)
for name in ("CUDA_HOME", "CUDA_PATH", "CCACHE_DIR", "TMPDIR", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions += [
    ("%build", config.genrec_build_dir),
    ("%source", config.genrec_source_dir),
    ("%python", config.genrec_python),
    ("%cxx", config.genrec_cxx),
    ("%nvcc", config.genrec_nvcc),
]

# A test that needs what not every machine has says so: REQUIRES: nvcc, REQUIRES: genrec-compile.
if config.genrec_sanitize:
    config.available_features.add("sanitizer")
if config.genrec_nvcc and os.path.exists(config.genrec_nvcc):
    config.available_features.add("nvcc")
# NVIDIA's disassembler: of the toolkit, or of packages in the project's Python environment.
packages = glob.glob(os.path.join(os.path.dirname(config.genrec_python), "../lib/python3*/site-packages/nvidia/*/bin"))
config.environment["PATH"] = os.pathsep.join([config.environment["PATH"], *packages])
if all(shutil.which(tool, path=config.environment["PATH"]) for tool in ("cuobjdump", "nvdisasm")):
    config.available_features.add("cuobjdump")
for tool in (
    "genrec-opt", "genrec-translate", "genrec-compile", "genrec-run", "genrec-fuzz", "genrec-datagen", "genrec-diff",
    "genrec-checkpoint",
):  # fmt: skip
    if shutil.which(tool, path=config.environment["PATH"]):
        config.available_features.add(tool)
