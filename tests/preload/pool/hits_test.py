#!/usr/bin/env python3
"""No hit of a pool touches the ledger's shared memory, nor makes a system call, nor calls malloc, pitched or not: PAIRS (every_hit.cc)."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "group"))
from members import Machine  # noqa: E402
from harness import BUILD, GIB, LIBRARIES, LIBRARY, MIB, SANITIZED, expect, expect_that, main  # noqa: E402

PAIRS = int(sys.argv[1])
PRELOAD = str(BUILD / "lib/ration/recorded/libration.so")
RATION = str(12 * GIB)
# Slabs, where whatever is no hit grows the pool; blocks that are stitched are no hits.
POOL = {"RATION_MODE": "pool", "RATION_BACKING": "slab", "RATION_PREALLOCATE_AFTER": "0", "LD_PRELOAD": LIBRARIES.replace(str(LIBRARY), PRELOAD)}
GROUPS = {"in a group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": RATION},
          "in a group that only counts": {"RATION_GROUP": "g", "RATION_LIMIT": RATION},
          "in no group": {"RATION_LIMIT": RATION}}
BACKED = {"preallocated": {"RATION_PREALLOCATE": RATION}, "grown": {"RATION_PREALLOCATE": "false"}}
STEADY = ("1", "1000", "64")  # one thread, 1,000 live blocks of up to 64 MiB
ROUGH = ("64", "256")
COUNTED = "0" if SANITIZED else "1"  # a sanitizer's allocator has system calls of its own
RIGHT, WRONG = 0, 1


def churn(folder, settings, *what, status=RIGHT):
    """What the churn prints of its calls, after `ration ps` looked at the process: figures, rows, complaints."""
    with Machine(folder, devices="16GiB", **POOL | settings) as machine:
        member = machine.start("every_hit", str(machine.state), *what)
        said, complaints = member.read(), []
        while said and not said.startswith("calls="):
            complaints.append(said)
            said = member.read()
        rows = machine.ps()["processes"] if said and status == RIGHT else []
        member.ends(status, f"{complaints} {said}")
    figures = {key: int(number) for key, number in re.findall(r"(\w+)=(\d+)", said)}
    print(" ", said)
    return figures, rows, complaints


def every_hit(backed, settings, *what):
    def case(folder):
        seen, rows, _ = churn(folder, settings, *what, str(PAIRS), COUNTED)
        alone = seen["hits"] - seen["unnoticed"]
        expect_that(f"many hits among {seen}", 10 * alone > seen["calls"])
        expect_that(f"calls that published and frees that were due among {seen}",
                    seen["published"] > 20 and seen["faulted"] > 20 and seen["due"] > 5)
        expect_that(f"each allocation that touched the ledger published: {seen}",
                    seen["asked"] <= (seen["calls"] // 100 if backed == "grown" else 0))
        # A free asks whether the pool can grow where the pool could not serve a block of its size again. Frees that
        # were due are several times as many.
        expect_that(f"hardly a free touched the ledger and published nothing: {seen}",
                    seen["asked_at_free"] <= seen["calls"] // 1000)
        expect_that(f"one thread waits for no other: {seen}", what[0] != "1" or seen["waited"] == 0)
        expect("processes", len(rows), 1)
        used, reserved = rows[0]["used_bytes"], rows[0]["reserved_bytes"]
        # Threads that free at once see each other's frees late.
        off = int(what[0]) * max(MIB, reserved // 64)
        expect_that(f"ration ps says {used} for {seen['live']} of {reserved}", abs(used - seen["live"]) <= off)
    return case


def steady(folder):
    seen, _, _ = churn(folder, GROUPS["in a group"] | {"RATION_PREALLOCATE": "true"}, *STEADY, str(4 * PAIRS), COUNTED)
    share = 1 - seen["hits"] / seen["calls"]
    print(f"  {100 * share:.2f}% of {seen['calls']} calls are no hits")
    expect_that(f"few of the calls are no hits: {share}", share <= 0.01)


def control(what, complaint):
    def case(folder):
        _, _, said = churn(folder, GROUPS["in a group"], "1", *ROUGH, "1000", COUNTED, what, status=WRONG)
        expect_that(f"it says {complaint}: {said}", any(complaint in line for line in said))
    return case


cases = {f"{threads} threads, {group}, {backed}": every_hit(backed, GROUPS[group] | BACKED[backed], threads, *ROUGH)
         for threads in ("1", "2") for group in GROUPS for backed in BACKED}
cases |= {"a steady churn of 1,000 blocks": steady, "a hit that touches the ledger is noticed": control("touch", "was served and touched")}
if not SANITIZED:
    cases["a hit that makes a system call is noticed"] = control("call", "made a system call")
    cases["a hit that calls malloc is noticed"] = control("allocate", "called malloc")
main(cases)
