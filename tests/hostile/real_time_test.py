#!/usr/bin/env python3
"""A thread of real-time priority that arrives while another one of its processor is in Ration's first call."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "preload"))
from harness import expect, main, run  # noqa: E402


def first_use(folder):
    done = run("real_time", folder=folder, RATION_LIMIT="1GiB")
    expect("standard error", done.err, "")
    if done.out == "refused\n":
        print("skipped: the kernel refuses SCHED_FIFO or RLIMIT_RTTIME")
        return
    expect("status, and what it says", (done.status, done.out), (0, "arrived=1 first=0 second=0\n"))


main({"a thread of SCHED_FIFO sleeps while another thread starts Ration": first_use})
