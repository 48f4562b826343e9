#!/usr/bin/env python3
"""After the first call nothing reads the environment again, in any mode, with and without a log and a group. Nothing
opens a file except the ledgers of groups and of shared memory (read_once.cc)."""


from harness import expect, expect_that, main, run

BAD_SYSTEM_CALL = -31
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "RATION_LIMIT": "1GiB", "RATION_PREALLOCATE": "false"}


def read_once(what, logged, said="", **settings):
    def case(folder):
        done = run("read_once", what, folder=folder if logged else None, RATION_STATE_DIR=f"{folder}/state", **MACHINE, **settings)
        expect(f"said {done.err!r}", (done.status, done.out), (0, "done\n"))
        expect_that(done.err, said in done.err and bool(said) == bool(done.err))
    return case


def control(_):
    """Opening a file kills the process."""
    expect("status", run("read_once", "control", **MACHINE).status, BAD_SYSTEM_CALL)


SAYS = {"async": "cannot be shared"}
main({f"mode {mode}{', logged' if logged else ''}{', in a group' if group else ''}":
      read_once("sharing", logged, SAYS.get(mode, ""), RATION_MODE=mode, **group)
      for mode in ("pool", "direct", "async") for logged in (False, True)
      for group in ({}, {"RATION_GROUP": "team", "RATION_GROUP_LIMIT": "2GiB"})}
     | {f"mode {mode}{', logged' if logged else ''}, no file": read_once("sealed", logged, RATION_MODE=mode)
        for mode in ("pool", "direct", "async") for logged in (False, True)}
     | {"a file is opened": control})
