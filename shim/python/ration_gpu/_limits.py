"""What the modules for engines have in common: the share of a worker, and whether this process is under the library."""
from __future__ import annotations

import numbers
import os
import pathlib

from . import RationError

# The part of a device that each process leaves to the driver: its context, its modules, what its kernels need beside the limit.
MARGIN = 0.02


def fraction(part: float, margin: float = MARGIN) -> str:
    """`part` (0 to 1) of each device less `margin` of it, as a limit; half of the part at least. A whole device is whole: nobody
    shares it."""
    if not isinstance(margin, numbers.Real):
        raise TypeError(f"margin={margin!r} is no number: write the part of a device, 0 or more and less than 1, such as {MARGIN}")
    if not 0 < part <= 1:
        raise ValueError(f"{part} is no part of a device: more than 0, at most 1")
    if not 0 <= margin < 1:
        raise ValueError(f"margin={margin} is no part of a device: 0 or more, less than 1")
    return f"{1.0 if part == 1 else max(part - margin, part / 2):.6f}"


def loaded(*names: str) -> set[str]:
    """Those of these libraries that are loaded into this process."""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        files = {line.rstrip("\n").rpartition("/")[2] for line in maps}
    return files & set(names)


def require_preloaded(what: str, remedy: str) -> None:
    """RationError, unless this process was started under the library and is not inert."""
    if not loaded("libration.so"):
        with open("/proc/self/environ", encoding="utf-8", errors="surrogateescape") as start:
            asked = [entry.partition("=")[2] for entry in start.read().split("\0") if entry.startswith("LD_PRELOAD=")]
        ours = [path for path in " ".join(asked).replace(":", " ").split() if pathlib.PurePath(path).name == "libration.so"]
        why = f"{ours[0]} could not be loaded here" if ours else "it was started without libration.so in LD_PRELOAD"
        raise RationError(f"{what} would have no limit: {why}; {remedy}")
    if os.environ.get("RATION_DISABLE") == "1":
        raise RationError(f"{what} would have no limit: RATION_DISABLE=1 is set; {remedy}")
