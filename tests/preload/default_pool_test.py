#!/usr/bin/env python3
"""A device's default memory pool, and pools that a program makes, do what they do on a device of the limit's size."""
from harness import GIB, MIB, expect, main, run

MODES = {"pool": {}, "grown on demand": {"RATION_PREALLOCATE": "false"}, "async": {"RATION_MODE": "async"},
         "direct": {"RATION_MODE": "direct"}}


def same(case, limit, blocks, settings):
    def one(_):
        words = (case, str(limit), str(blocks))
        native = run("default_pool", *words, preload=None, SIMCUDA_DEVICES=f"2x{limit}", SIMCUDA_CONTEXT_BYTES="0")
        ours = run("default_pool", *words, SIMCUDA_DEVICES="2x16GiB", RATION_LIMIT=limit, **settings)
        expect("status, natively and under Ration", (native.status, ours.status), (0, 0))
        expect("answers", ours.out.splitlines(), native.out.splitlines())
    return one


SIZES = ((64 * MIB, 1), (64 * MIB, 4), (64 * MIB, 64), (256 * MIB, 64), (8 * GIB, 1024))
cases = {f"{case}, {name}": same(case, GIB, 1, settings) for name, settings in MODES.items()
         for case in ("settings", "access", "rests")}
cases |= {f"{case}, {blocks} blocks in {limit // MIB} MiB, {name}": same(case, limit, blocks, settings)
          for name, settings in MODES.items() for case in ("fill", "fill_named", "fill_own") for limit, blocks in SIZES}
main(cases)
