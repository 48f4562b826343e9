"""Follows the log of a process while it runs: which blocks it holds, where they were allocated, and what was refused."""
from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import typing


# Folders whose code is not the program's own.
_PACKAGES = {"site-packages", "dist-packages", "ctypes", "ration_gpu"}


def size(count: int) -> str:
    """Bytes, as Ration writes them where they count: "6.40GiB (6871947673 bytes)"; to the nearest, with three digits but
    for whole KiB and MiB."""
    exact = f"{count} byte{'' if count == 1 else 's'}"
    if count < 1 << 10:
        return exact

    prefix, unit = "K", 1 << 10
    for prefix in "KMGTPE":
        if (count + unit // 2) // unit < 1024 or prefix == "E":
            break
        unit <<= 10
    is_whole = prefix in "KM" and count % unit == 0
    parts = [(count * 10**decimals + unit // 2) // unit for decimals in (0, 1, 2)]
    decimals = 0 if is_whole or parts[1] >= 1000 else 1 if parts[2] >= 1000 else 2
    digits = str(parts[decimals])
    number = f"{digits[:-decimals]}.{digits[-decimals:]}" if decimals else digits
    return f"{number}{prefix}iB ({exact})"


@dataclasses.dataclass(frozen=True)
class Block:
    """A block of device memory."""

    seq: int
    device: int
    bytes: int
    place: str


@dataclasses.dataclass(frozen=True)
class Refusal:
    """A request for memory that was refused, and the blocks that the process held then."""

    record: dict[str, typing.Any]
    held: list[Block]

    def words(self) -> str:
        record = self.record
        limit = f" of its limit of {size(record['limit'])}" if record.get("limit") else ""
        group = ""
        if "group_limit" in record:
            group = f", its group {record['group']} held {size(record['group_reserved'])} of {size(record['group_limit'])}"
        free = "an unknown part" if record["device_free"] is None else size(record["device_free"])
        return (f"{record['api']} of {size(record['req'])} on device {record['dev']} was refused ({record['reason']}): the process "
                f"used {size(record['used'])}{limit}{group}, {free} of the device were free")


def by_place(blocks: typing.Iterable[Block]) -> list[str]:
    """Lines that say how much was allocated where, the most first."""
    sums: dict[tuple[int, str], list[int]] = {}
    for block in blocks:
        entry = sums.setdefault((block.device, block.place), [0, 0])
        entry[0] += block.bytes
        entry[1] += 1
    return [f"{size(total)} in {count} block{'s' if count > 1 else ''} on device {device}{' from ' + place if place else ''}"
            for (device, place), (total, count) in sorted(sums.items(), key=lambda item: -item[1][0])]


class Log:
    """The log at `path`, which need not exist yet."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        self.live: dict[tuple[int, str], Block] = {}
        self.refusals: list[Refusal] = []
        self._offset = 0
        self._frames: dict[int, dict[str, typing.Any]] = {}
        self._stacks: dict[int, tuple[int, int]] = {}

    def read(self) -> None:
        """What was written since the last call; every line that is whole."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self._offset)
                text = file.read()
        except FileNotFoundError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._offset += len(whole)
        for line in whole.splitlines():
            if line.strip():  # a line that was read already may have been filled up with blanks since, to the end of its page
                self._take(json.loads(line))

    def _take(self, record: dict[str, typing.Any]) -> None:
        kind = record["t"]
        if kind == "frame":
            self._frames[record["id"]] = record
        elif kind == "stack":
            self._stacks[record["id"]] = (record["frame"], record["parent"])
        elif kind == "alloc" and record["kind"] != "host":
            block = Block(record["seq"], record["dev"], record["size"], self._place(record.get("stack", 0)))
            self.live[record["dev"], record["addr"]] = block
        elif kind == "free":
            self.live.pop((record["dev"], record["addr"]), None)
        elif kind == "oom":
            self.refusals.append(Refusal(record, [block for block in self.live.values() if block.device == record["dev"]]))

    def _place(self, stack: int) -> str:
        """FILE:LINE of the innermost lines of Python that are nobody's package; else the innermost one."""
        places: list[str] = []
        first = ""
        here = os.path.join(os.getcwd(), "")
        while stack in self._stacks and len(places) < 3:
            number, stack = self._stacks[stack]
            frame = self._frames.get(number, {})
            if frame.get("mod") != 0 or not frame.get("file"):
                continue
            file = frame["file"][len(here):] if frame["file"].startswith(here) else frame["file"]
            place = f"{file}:{frame.get('line')} in {frame.get('fn')}"
            first = first or place
            if not _PACKAGES & set(pathlib.PurePath(frame["file"]).parts) and not frame["file"].startswith("<"):
                places.append(place)
            elif places:  # what called the program's own lines
                break
        return ", called at ".join(places) or first
