#!/usr/bin/env python3
"""hashcat -I describes a limit as it describes a device of that size, in every mode."""
import re

from clients import MODES, limited, needs, run
from harness import GIB, MIB, expect, expect_that, main

needs("hashcat", "hashcat")
LIMIT = 3 * GIB // 2


def cuda_part(out, _):
    """What OpenCL says is not the driver's."""
    return out.split("OpenCL Info:")[0]


def describe(folder, devices, **environment):
    return cuda_part(*run(["hashcat", "-I"], folder, devices, **environment))


def natively(folder):
    shown = describe(folder, "1536MiB")
    expect("memory", re.findall(r"Memory\.(\w+)\.*: (\d+) MB", shown), [("Total", str(LIMIT // MIB)), ("Free", str(LIMIT // MIB))])
    expect_that(f"the device is named: {shown}", "simcuda GPU" in shown)


def in_mode(mode):
    def case(folder):
        expect("a limit beside a device of that size", describe(folder, "2GiB", **limited(mode, LIMIT)), describe(folder, "1536MiB"))
    return case


main({"natively": natively} | {f"in mode {mode}": in_mode(mode) for mode in MODES})
