"""What the machine has: its device, and the tools that some jobs need."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CAPABILITY = (9, 0)  # programs are compiled for sm_90a, and for nothing else
# Attributes of a device by their numbers in cuda.h.
MAJOR, MINOR, MULTIPROCESSORS = 75, 76, 16
# Where drivers are on machines whose loader does not know them.
DRIVER_FOLDERS = ("/usr/local/nvidia/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib/wsl/lib")
QUERY = "name,driver_version,memory.total,clocks.max.sm,clocks.max.mem,power.limit,ecc.mode.current,mig.mode.current"


def load_driver() -> tuple[Any, str]:
    """The driver's library, and its folder where the loader does not find it by itself; None where there is none."""
    for folder in ("", *DRIVER_FOLDERS):
        try:
            return ctypes.CDLL(str(Path(folder, "libcuda.so.1"))), folder
        except OSError:
            continue
    return None, ""


def older_driver(found: dict[str, Any], wanted: int) -> str:
    """Why programs of this version of CUDA do not run with the driver; "": they do, those of one major version run."""
    version = found.get("driver_cuda", wanted)
    if version // 1000 >= wanted // 1000:
        return ""

    def shown(number: int) -> str:
        return f"{number // 1000}.{number % 1000 // 10}"

    return (
        f"the driver has CUDA {shown(version)}, and programs were compiled with {shown(wanted)}: install a newer "
        f"driver, or name the folder of cuda-compat-{wanted // 1000}-{wanted % 1000 // 10} in LD_LIBRARY_PATH"
    )


def find_device() -> tuple[str, dict[str, Any]]:
    """Why there is no device that the programs run on ("": there is one), and what the driver says of it."""
    driver, folder = load_driver()
    if driver is None:
        return "there is no CUDA driver (libcuda.so.1)", {}
    status, count, version = driver.cuInit(0), ctypes.c_int(), ctypes.c_int()
    if status != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return f"there is no CUDA device (cuInit: {status})", {}
    driver.cuDriverGetVersion(ctypes.byref(version))
    name, value = ctypes.create_string_buffer(128), ctypes.c_int()
    driver.cuDeviceGetName(name, len(name), 0)

    def attribute(number: int) -> int:
        driver.cuDeviceGetAttribute(ctypes.byref(value), number, 0)
        return value.value

    found = {
        "name": name.value.decode(errors="replace"),
        "devices": count.value,
        "driver_cuda": version.value,
        "driver_folder": folder,
        "capability": f"{attribute(MAJOR)}.{attribute(MINOR)}",
        "multiprocessors": attribute(MULTIPROCESSORS),
    }
    if (attribute(MAJOR), attribute(MINOR)) != CAPABILITY:
        wanted = ".".join(map(str, CAPABILITY))
        return f"the device, {found['name']}, has capability {found['capability']}, not {wanted}", found
    return "", found


def older_libc(wanted: str) -> str:
    """Why programs that need this version of glibc do not start here; "": they do."""
    name, version = platform.libc_ver()

    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")]

    if name != "glibc" or numbers(version) < numbers(wanted):
        return f"programs were packed for glibc {wanted}; this machine has {name} {version}".strip()
    return ""


def wheel_libraries(python: str) -> list[str]:
    """Folders of the `nvidia` wheels' libraries (cuBLAS, NCCL, …) that this Python sees."""
    folders = "d for p in nvidia.__path__ for d in glob.glob(p + '/**/lib', recursive=True)"
    program = f"import nvidia, glob; print(*({folders}), sep='\\n')"
    try:
        said = subprocess.run([python, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return said.stdout.split("\n")[:-1] if said.returncode == 0 else []


def find_python() -> tuple[str, str]:
    """The Python of the peers (PYTHON, else the one that runs this), and why it has no torch for them ("": it has)."""
    python = os.environ.get("PYTHON", sys.executable)
    if python == sys.executable:
        return python, "" if importlib.util.find_spec("torch") else f"{python} has no torch; PYTHON names another"
    found = shutil.which(python)
    if not found:
        return python, f"there is no {python} (PYTHON)"
    has = subprocess.run([found, "-c", "import importlib.util as u; exit(not u.find_spec('torch'))"], check=False)
    return found, "" if has.returncode == 0 else f"{found} has no torch"


def tool_folders() -> list[str]:
    """Where toolkits and Nsight Compute are installed; the newest first."""
    versions = sorted(Path("/opt/nvidia/nsight-compute").glob("*"), reverse=True)
    return ["/usr/local/cuda/bin", "/usr/local/cuda/compute-sanitizer", *map(str, versions)]


def find_tool(variable: str, name: str) -> tuple[str, str]:
    """A program by the variable that names it or on PATH, and why there is none."""
    given = os.environ.get(variable, name)
    found = shutil.which(given) or shutil.which(given, path=":".join(tool_folders()))
    return (found, "") if found else ("", f"there is no {given} on PATH; {variable} names one")


def describe_host() -> dict[str, Any]:
    """Processor, memory, system."""
    memory = Path("/proc/meminfo").read_text().split("\n", 1)[0] if Path("/proc/meminfo").exists() else ""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return {
        "processor": models[0].partition(":")[2].strip() if models else platform.processor(),
        "processors": len(os.sched_getaffinity(0)),
        "memory": memory.partition(":")[2].strip(),
        "system": platform.platform(),
        "libc": "-".join(platform.libc_ver()),
        "python": platform.python_version(),
    }


def query_device() -> str:
    """What nvidia-smi says of the device; "": it is not there."""
    tool = shutil.which("nvidia-smi") or shutil.which("nvidia-smi", path="/usr/local/nvidia/bin:/usr/lib/wsl/lib")
    if not tool:
        return ""
    command = [tool, f"--query-gpu={QUERY}", "--format=csv"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    except subprocess.TimeoutExpired:
        return "nvidia-smi did not answer within 60 s"
