#!/usr/bin/env python3
"""Settings are read once, at the first CUDA call: when a file changes later, no call opens it and no setting changes.
inotify reports every open."""
import ctypes
import os
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "group"))

from harness import GIB, LIBRARIES, clean_environment, driver_folder, expect, expect_that, main  # noqa: E402
from members import OBEY, REFUSED, Member  # noqa: E402

IN_ACCESS, IN_OPEN = 0x1, 0x20
LIBC = ctypes.CDLL(None, use_errno=True)
# Allocations and frees with and without the pool, refusals, and every query about memory.
OPS = "alloc=1m query total=0 alloc=3m free_null context=0 alloc=1m destroy={} current=0 synchronize alloc=5m"


class Opened:
    """Files in `folders` that have been opened or read since the last call."""

    def __init__(self, *folders):
        self.number = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for folder in folders:
            if LIBC.inotify_add_watch(self.number, os.fsencode(folder), IN_ACCESS | IN_OPEN) < 0:
                raise OSError(ctypes.get_errno(), "inotify_add_watch")

    def names(self):
        found = []
        try:
            while True:
                data = os.read(self.number, 65536)
                while data:
                    *_, length = struct.unpack_from("iIII", data)
                    found.append(data[16:16 + length].rstrip(b"\0").decode())
                    data = data[16 + length:]
        except BlockingIOError:
            return found


def program(folder, **settings):
    environment = clean_environment() | {
        "LD_PRELOAD": LIBRARIES, "LD_LIBRARY_PATH": str(driver_folder("sim")), "DRIVER_FOLDER": str(driver_folder("sim")),
        "SIMCUDA_DEVICES": "4GiB", "XDG_CONFIG_HOME": str(folder)} | settings
    return Member(OBEY, environment, folder)


def once(**more):
    def case(scratch):
        folder = pathlib.Path(scratch)
        settings = folder / "ration"
        settings.mkdir()
        file = settings / "config.json"
        file.write_text('{"limit": "1GiB"}')
        named = settings / "named.json"
        named.write_text('{"headroom": 0}')
        opened = Opened(settings)
        member = program(folder, RATION_CONFIG=str(named), RATION_STATE_DIR=scratch + "/state",
                         **{key: value.replace("FOLDER", scratch) for key, value in more.items()})
        member.do("init context=0 alloc=1m")
        expect_that("they are read at first use", {"config.json", "named.json"} <= set(opened.names()))
        for context, text in enumerate(('{"limit": "8MiB"}', "{", None), start=1):
            file.unlink() if text is None else file.write_text(text)
            opened.names()
            member.do(OPS.format(context))
            expect("refused beyond the limit", member("alloc=1100m"), REFUSED)
            expect("opened", opened.names(), [])
            expect("total", member.memory()[1], GIB)
        member.end()
    return case


def no_file_without_cuda(scratch):
    folder = pathlib.Path(scratch)
    (folder / "ration").mkdir()
    (folder / "ration/config.json").write_text('{"limit": "1GiB"}')
    opened = Opened(folder / "ration")
    member = program(folder)
    expect("end", member.end(), 0)
    expect("opened", opened.names(), [])


WITH = {"": {}, ", logged": {"RATION_LOG": "FOLDER/run.jsonl"}, ", in a group": {"RATION_GROUP": "team", "RATION_GROUP_LIMIT": "2GiB"}}

main({mode + name: once(RATION_MODE=mode, **more) for mode in ("pool", "direct", "async") for name, more in WITH.items()}
     | {"without CUDA nothing is read": no_file_without_cuda})
