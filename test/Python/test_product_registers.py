"""Registers of products under way: what the reader of machine code sees, and that kernels of the build keep to it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test" / "Cuda"))

import product_registers  # noqa: E402 -- the path comes first

BUILD = Path(os.environ.get("GENREC_BUILD_DIR", ROOT / "build"))

OBJECTS = sorted((BUILD / "cuda-objects").rglob("*.sm90.cu.o"))


def listing(*lines: str) -> str:
    """A kernel as cuobjdump lists it, from address 0 in steps of 16."""
    code = "".join(f"        /*{16 * at:04x}*/   {line} ;   /* 0x0 */\n" for at, line in enumerate(lines))
    return f"\t\tFunction : kernel\n{code}"


def found(*lines: str) -> str:
    """What is wrong with a kernel."""
    ((_, code),) = product_registers.functions(listing(*lines))
    return product_registers.check(code)


SCORES = "HGMMA.64x64x16.F32.BF16 R24, gdesc[UR8], RZ, !UPT, gsb0"
OUT = "HGMMA.64x128x16.F32.BF16 R56, R152, gdesc[UR8].tnspB, R56, gsb0"
ONE_LEFT, NONE_LEFT = "WARPGROUP.DEPBAR.LE gsb0, 0x1", "WARPGROUP.DEPBAR.LE gsb0, 0x0"


def test_registers_are_free_behind_the_wait() -> None:
    assert found(SCORES, OUT, ONE_LEFT, "FADD R24, R24, R3", NONE_LEFT, "VIADD R153, R19, 0x1", "EXIT") == ""
    assert found(OUT, "STS.128 [R4], R152", "FADD R3, R152, R153", NONE_LEFT, "EXIT") == ""  # they are read


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        ((OUT, "VIADD R155, R19, 0x8"), "writes R155, of the left operand of the product at 0000"),
        ((SCORES, OUT, ONE_LEFT, "@!P0 MOV R152, R3"), "writes R152, of the left operand of the product at 0010"),
        ((OUT, "LDS.128 R148, [R4]", "LDS.128 R152, [R4]"), "0020: LDS.128 R152, [R4]: writes R152"),
        ((OUT, "IMAD.WIDE R150, R2, R3, R8", "IMAD.WIDE R154, R2, R3, R8"), "writes R154"),
        ((OUT, "SHFL.BFLY PT, R153, R2, 0x1, 0x1f"), "writes R153"),
        ((OUT, "FADD R3, R56, R57"), "takes R56, of the sums of the product at 0000"),
        ((SCORES, OUT, ONE_LEFT, "MOV R119, R3"), "takes R119, of the sums of the product at 0010"),
        ((OUT, "HGMMA.64x64x16.F32.BF16 R136, gdesc[UR8], RZ, !UPT"), "adds to the left operand of the product"),
        # On the way back to the beginning of a loop, before the wait there.
        (("MOV R152, R3", NONE_LEFT, OUT, "@P0 BRA 0x0", "EXIT"), "0000: MOV R152, R3: writes R152"),
    ],
    ids=["write", "one left", "quad", "pair", "behind a predicate", "sums", "last sum", "product", "loop"],
)  # fmt: skip
def test_an_access_before_the_wait_is_named(lines: tuple[str, ...], wrong: str) -> None:
    assert wrong in found(*lines, "EXIT")


@pytest.mark.skipif(not OBJECTS, reason="this build has no nvcc")
@pytest.mark.parametrize("path", OBJECTS, ids=lambda path: path.name)
def test_kernels_keep_registers_of_products(path: Path) -> None:
    """Of attention: a left operand in registers is what only machine code shows (tensor/wgmma.h)."""
    count, failures = product_registers.check_file(path)
    assert count >= 4 and failures == []
