#!/usr/bin/env python3
"""A process that starts beside others that hold memory and do not use it: by every route by which the driver takes
memory it gets what it gets natively. newcomers NEIGHBOURS SIZE: beside so many, on a device of SIZE GiB."""
import pathlib
import subprocess
import sys

from members import PROGRAMS, Machine, expect_that
from harness import GIB, MIB, driver_folder, main

NEIGHBOURS, SIZE = int(sys.argv[1]), int(sys.argv[2]) * GIB
CONTEXT = SIZE // (8 * (NEIGHBOURS + 1)) // MIB * MIB
BYTES = SIZE // 8 // MIB
ROUTES = [route for route in subprocess.run([PROGRAMS / "newcomer"], capture_output=True, text=True, check=True, env={
    "LD_LIBRARY_PATH": str(driver_folder("sim"))}).stdout.split() if not route.startswith("ipc_")]
HERE = [route for route in ROUTES if not route.startswith("elsewhere_")]
PLACES = {0: HERE, 1: [route for route in ROUTES if route not in HERE]}  # by the device whose memory they take
POOLS = {"granules": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "slabs": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
         "async": {"RATION_MODE": "async"}}
IN_POOL = {"RATION_PREALLOCATE": "true", "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}
APART, STRANGER = "a group that the newcomer is not in", ("RATION_GROUP", "RATION_GROUP_LIMIT")
# What each process may have is enough for a newcomer, and all together have more than the device.
LIMITS = {"no limit": {}, "a limit": {"RATION_LIMIT": f"{max(25, 100 // NEIGHBOURS)}%"}, "a reserve": {"RATION_RESERVE": str(SIZE // 16)},
          "a group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(SIZE)}, APART: {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": str(SIZE)}}


def beside(pool, limit):
    def case(folder):
        refused = []
        settings = POOLS[pool] | IN_POOL | LIMITS[limit]
        for device, routes in PLACES.items():
            (apart := pathlib.Path(folder) / f"{device}").mkdir()
            with Machine(apart, devices=",".join([str(SIZE)] * (device + 1)), **settings) as machine:
                machine.simulated["SIMCUDA_CONTEXT_BYTES"] = str(CONTEXT)
                neighbours = [Neighbour(machine, device) for _ in range(NEIGHBOURS)]
                for route in routes:
                    for neighbour in neighbours:
                        neighbour.fill()
                    newcomer = start(machine, route, limit == APART)
                    code = newcomer.read()
                    ended = newcomer.end()
                    if (code, ended) != ("0", 0):
                        refused.append(f"{route}: {code} {ended} {newcomer.err()}")
        print(f"  covered: {len(ROUTES) - len(refused)} of {len(ROUTES)}")
        expect_that(f"every route is served: {refused}", not refused)
    return case


def start(machine, route, is_stranger):
    environment = {name: value for name, value in machine.environment().items() if not (is_stranger and name in STRANGER)}
    return machine.launch([PROGRAMS / "newcomer", route, str(BYTES)], environment)


class Neighbour:
    """It uses as much as it can get, and then holds that idle."""

    def __init__(self, machine, device):
        self.member = machine.member(device)
        self.tried = 0

    def fill(self):
        free = self.member.memory()[0] // MIB
        for part in (free, free * 3 // 4, free // 2, free // 4):
            self.tried += 1
            if self.member(f"alloc={part}m") == 0:
                self.member.do(f"free={self.tried - 1} synchronize")
                return


main({f"{pool}, {limit}": beside(pool, limit) for pool in POOLS for limit in LIMITS})
