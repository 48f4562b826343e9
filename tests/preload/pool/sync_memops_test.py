#!/usr/bin/env python3
"""A block that SYNC_MEMOPS is set on has it however it came about (sync_memops.cc): answers are as without Ration, and every
synchronous call of the hook table that touches it has ended when it returns, while streams lag. No other call waits more."""
import pathlib
import re

from harness import MIB, expect, expect_that, main, run

HOOK_TABLE = pathlib.Path(__file__).resolve().parents[3] / "shim/hook_table.inc"
NOT_SIMULATED = {"cuMemcpy3DPeer", "cuMemcpy3DPeer_ptds"}
LAG = {"SIMCUDA_LATENCY_US": "1000"}
MEMORY = {"granules": {"RATION_MODE": "pool", "RATION_BACKING": "vmm"}, "slabs": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
          "a growing pool": {"RATION_MODE": "pool", "RATION_BACKING": "vmm", "RATION_PREALLOCATE": "false"},
          "the driver's blocks": {"RATION_MODE": "direct"}, "the driver's pools": {"RATION_MODE": "async"}}
DONE, NOT_DONE, NOT_SUPPORTED = "0 0", "0 600", "801"


def synchronous_hooks():
    """Those of copies and fills without a stream."""
    names = re.findall(r"^RATION_HOOK\((cuMem(?:cpy|set)\w*)", HOOK_TABLE.read_text(), re.M)
    return {name for name in names if "Async" not in name}


def answers(case, preload=True, **settings):
    preload = {} if preload else {"preload": None}
    done = run("sync_memops", case, RATION_LIMIT=64 * MIB, **preload, **settings)
    expect(f"status, {done.out[-200:]}", (done.status, done.err), (0, ""))
    return [tuple(line.split(": ")) for line in done.out.splitlines()]


def of_calls(said):
    return {what: answer for what, answer in said if what.startswith("cuMem")}


def same(case, settings):
    def one(_):
        expect("as without Ration", answers(case, **settings, **LAG), answers(case, preload=False, **LAG))
    return one


def every_call(settings):
    def one(_):
        said = answers("calls", **settings, **LAG)
        expect("first", said[:7], [("mark", "0"), ("is", "1"), ("its neighbour is", "0"), ("a fill", "0"), ("is there", "0"),
                                   ("a copy", "0"), ("is there, too", "0")])
        calls, table = of_calls(said), synchronous_hooks() - NOT_SIMULATED
        print(f"covered: {len(table & {call.split()[0] for call in calls})} of {len(table)}")
        expect("not met", table - {call.split()[0] for call in calls}, set())
        expect("not done", {call: answer for call, answer in calls.items() if answer != DONE}, {})
    return one


def no_other_call(settings):
    def one(_):
        said = answers("unmarked", **settings)
        expect("set and taken off", [pair for pair in said if not pair[0].startswith("cuMem")],
               [("mark", "0"), ("no mark", "0"), ("is", "0")])
        calls = of_calls(said)
        expect_that(f"{len(calls)} calls", len(calls) > 100)
        expect("done", {call: answer for call, answer in calls.items() if answer != NOT_DONE}, {})
    return one


def a_stitched_block(_):
    said = answers("stitched", RATION_GRANULE="2MiB", **MEMORY["granules"], **LAG)
    expect("set", said[:2], [("mark", "0"), ("is", "1")])
    expect("not done", {call: answer for call, answer in of_calls(said).items() if answer != DONE}, {})


def a_freed_block(settings):
    def one(_):
        said = answers("freed", **settings)
        expect("the next", said[:4], [("mark", "0"), ("free", "0"), ("the same place", "0"), ("is", "0")])
        expect("done", {call: answer for call, answer in of_calls(said).items() if answer != NOT_DONE}, {})
    return one


def its_own_mapping(_):
    said = dict(answers("own_mapping", **MEMORY["granules"]))
    expect("what the driver says", [said[key] for key in ("mark", "mark its own", "its own is")], ["0", NOT_SUPPORTED, "0"])
    expect("done", {call: answer for call, answer in of_calls(said.items()).items() if answer != NOT_DONE}, {})


def captures(settings):
    def one(_):
        said = answers("captures", **settings, **LAG)
        native = answers("captures", preload=False, **LAG)
        expect_that(f"as without Ration: {said}", said[8:] == native[8:])
        expect("the codes in the strict mode, which loses no graph", {value for _, value in said[2:7]}, {"0"})
    return one


main({f"every synchronous call, {memory}": every_call(settings) for memory, settings in MEMORY.items()}
     # A slab that once had it keeps it.
     | {f"no other call, {memory}": no_other_call(settings) for memory, settings in MEMORY.items() if memory != "slabs"}
     | {f"contexts, {memory}": same("contexts", settings) for memory, settings in MEMORY.items()}
     | {f"a freed block, {memory}": a_freed_block(MEMORY[memory]) for memory in ("granules", "a growing pool", "the driver's blocks")}
     | {f"captures, {memory}": captures(settings) for memory, settings in MEMORY.items()}
     | {"a stitched block": a_stitched_block, "a mapping of the program's own": its_own_mapping})
