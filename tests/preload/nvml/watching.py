"""Shared by the NVML tests: runs a monitor and returns its answers in order."""
import json

from harness import GIB, MIB, expect, expect_that, run

RESERVED = 512 * MIB  # memory that NVML counts in addition to CUDA's total
DEVICE = 8 * GIB
MACHINE = {"SIMCUDA_DEVICES": "3x8GiB", "SIMCUDA_NVML_RESERVED": str(RESERVED), "SIMCUDA_CONTEXT_BYTES": str(MIB)}
REAL = DEVICE + RESERVED  # a device's size in NVML
WAYS = ("monitor", "monitor_linked")


def answers(program, ops, **settings):
    """The lines that `program` printed; every op must succeed."""
    done = run(program, *ops.split(), **(MACHINE | settings))
    expect(f"{program} {ops}: status, {done.err!r}", done.status, 0)
    said = [json.loads(line) for line in done.out.splitlines()]
    for answer in said:
        if "v1" in answer:
            adds_up(answer)
    return said


def adds_up(answer):
    total, free, used = answer["v1"]
    total_v2, reserved, free_v2, used_v2 = answer["v2"]
    expect(f"{answer}: total = free + used", free + used, total)
    expect(f"{answer}: total = reserved + free + used", reserved + free_v2 + used_v2, total_v2)
    expect(f"{answer}: both versions", (total_v2, free_v2), (total, free))
    expect(f"{answer}: version", answer["version"], 40 | 2 << 24)


def totals(said):
    return [answer["v1"][0] for answer in said if "v1" in answer]


def sizes(said):
    """(total, free) of each NVML answer."""
    return [tuple(answer["v1"][:2]) for answer in said if "v1" in answer]
