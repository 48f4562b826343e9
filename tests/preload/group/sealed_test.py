#!/usr/bin/env python3
"""A pool hit uses no shared memory: the ledger's file is made inaccessible in a running process (sealed.cc)."""
from members import BUILD, LIBRARIES, Machine, expect
from harness import LIBRARY, main

# A core whose threads that give are not started (tests/preload/pool/recorder.cc): they would find the file gone.
WITHOUT_THREADS = LIBRARIES.replace(str(LIBRARY), str(BUILD / "lib/ration/recorded/libration.so"))
POOL = {"LD_PRELOAD": WITHOUT_THREADS, "RATION_MODE": "pool", "RATION_PREALLOCATE": "512MiB", "RATION_PREALLOCATE_AFTER": "0"}
GROUPS = {"a group": {"RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"},
          "a group that only counts": {"RATION_GROUP": "g", "RATION_LIMIT": "1GiB"}}


def sealed(what, group, backing="slab"):
    def case(folder):
        with Machine(folder, **POOL, **group, RATION_BACKING=backing) as machine:
            member = machine.start("sealed", str(machine.state / "group-g"), what)
            said = member.process.stdout.read()
            status = member.process.wait()
            expect(f"status, output {member.err()}", (status, said), (0, "100000 hits\n" if what == "hits" else ""))
    return case


main({f"{name}: {what}": sealed(what, group) for name, group in GROUPS.items() for what in ("hits", "grows")}
     | {f"{name}, of granules: hits": sealed("hits", group, "vmm") for name, group in GROUPS.items()})
