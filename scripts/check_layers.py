#!/usr/bin/env python3
"""Fails where a file includes a box of the layer diagram that its own box may not know.

check_layers.py [ROOT]        checks the tree
check_layers.py --self-test   proves that a wrong include is found
"""
import pathlib
import re
import sys
import tempfile

# The rooms of policy/ and what each may include of the others: arrows point down only.
ROOMS = {
    "devices": set(),
    "contexts": {"devices"},
    "block_pool": {"contexts", "devices"},
    "driver_pools": {"contexts", "devices"},
    "physical": {"contexts", "devices"},
    "imports": {"contexts", "devices"},
    "calls": {"block_pool", "driver_pools", "physical", "imports", "contexts", "devices"},
}
LEAVES = {"pool", "ledger", "events", "driver"}

# The rooms of cli/ likewise; "cli" itself is the files directly in it: the verbs' options, and verbs without a room.
CLI_ROOMS = {
    "base": set(),
    "manual": {"base"},
    "launch": {"base"},
    "run": {"launch", "base"},
    "usage": {"run", "launch", "base"},
    "doctor": {"usage", "run", "launch", "base"},
    "find": {"run", "launch", "base"},
}

# `A → B` of the design: A may include B, and nothing else of ours.
ARROWS = {
    "pool": set(),
    "config": set(),
    "ledger": set(),
    "events": set(),
    "driver": set(),
    **{"policy/" + room: LEAVES | {"policy/" + other for other in below} for room, below in ROOMS.items()},
    "runtime": {"config", *("policy/" + room for room in ROOMS)},
    "hooks": {"runtime", "driver", "policy/calls"},
    "preload": set(),
    "logs": {"config", "events", "pool", "cli/base"},
    **{"cli/" + room: {"config", "ledger", "events"} | {"cli/" + other for other in below} | ({"logs"} if below else set())
       for room, below in CLI_ROOMS.items()},
    "cli": {"config", "ledger", "events", "logs", *("cli/" + room for room in CLI_ROOMS)},
}

# Files directly in shim/ (the hook list, the C struct through which preload and core meet) and shim/base lie below all
# boxes: any folder of shim/ may include them, and the C types of NVIDIA's interfaces. They include nothing else of ours.
ABIS = ("shim/driver/abi.h", "shim/driver/nvml_abi.h")
SEAM = "shim/*"
BASE = "base"

# What comes from outside is used in few layers.
FOREIGN = {
    r"(fmt|spdlog)/": {"events"},
    r"nlohmann/": {"config", "events", "logs", "cli", *("cli/" + room for room in CLI_ROOMS)},
    r"CLI/": {"cli", "cli/manual"},
    r"(n?curses|term)\.h$": {"cli/usage"},
    r"(cuda|cuda_runtime\w*|cudaTypedefs|nvml)\.h$": set(),
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.M)
SUFFIXES = {".h", ".cc", ".c", ".S", ".inc"}


def box_of(path):
    """pool/x.h, shim/ledger/x.h, shim/policy/calls/x.h and shim/cli/run/x.h name their box, shim/x.h is a seam; everything else is none."""
    parts = path.split("/")
    if parts[:2] == ["shim", "policy"] or (parts[:2] == ["shim", "cli"] and len(parts) > 3):
        return "/".join(parts[1:3])
    if parts[0] == "shim":
        return SEAM if len(parts) == 2 or parts[1] == BASE else parts[1]
    return parts[0] if parts[0] in ARROWS else None


def resolve(root, source, name):
    """The file of ours that `name` means, seen from `source`: its own folder, the top, shim/."""
    for base in (source.parent, root, root / "shim"):
        path = (base / name).resolve()
        if path.is_file() and root in path.parents:
            return path.relative_to(root).as_posix()
    return None


# A file of hooks/ may include the classes of its own families only.
FAMILIES = {
    "array": {"array_memory"},
    "async": {"stream_memory"},
    "capture": {"sync_and_capture"},
    "code": {"overhead"},
    "context": {"context_life"},
    "device": {"device_memory"},
    "graph": {"graph_memory"},
    "graph_run": {"graph_memory"},  # launches, whose hooks are in reach.cc
    "host": {"host_memory"},
    "ipc": {"shared_blocks"},
    "legacy32": {"device_memory", "queries"},
    "pitch": {"device_memory"},
    "query": {"queries"},
    "before_work": {"device_reach"},  # hooks of work: reach.cc, synchronous.cc, launch.cc
    "launch": {"overhead"},
    "reach": {"device_reach"},
    "resolve": {"device_reach"},  # look-ups of what no hook meets
    "vmm": {"mapped_memory"},
}


def wrong_family(source, target):
    hook, family = pathlib.PurePosixPath(source), pathlib.PurePosixPath(target)
    return (hook.parent.as_posix() == "shim/hooks" and family.parent.as_posix() == "shim/policy/calls"
            and family.stem not in FAMILIES.get(hook.stem, ()))


def wrong_include(root, source, name):
    box = box_of(source.relative_to(root).as_posix())
    target = resolve(root, source, name)
    if target is None:
        for pattern, allowed in FOREIGN.items():
            if re.match(pattern, name) and box not in allowed:
                return f"<{name}> belongs to {' and '.join(sorted(allowed)) or 'no layer of ours'}"
        return None
    if target.split("/")[0] in ("tests", "examples"):
        return f"{target} is a test's or an example's: nothing includes it"
    other = box_of(target)
    if wrong_family(source.relative_to(root).as_posix(), target):
        return f"{source.name} may not include the family of other hooks ({target})"
    if target in ABIS or other in (None, SEAM, box) or other in ARROWS.get(box, ()):
        return None
    return f"{box} may not include {other} ({target})"


def check(root):
    root = root.resolve()
    problems, seen = [], 0
    for folder in ("pool", "config", "shim"):
        for source in sorted((root / folder).rglob("*")):
            if source.suffix not in SUFFIXES or not source.is_file():
                continue
            relative = source.relative_to(root).as_posix()
            box = box_of(relative)
            if box not in ARROWS and box != SEAM:
                problems.append(f"{relative}: shim/{box} is no box of the diagram")
                continue
            text = source.read_text(encoding="utf-8")
            for match in INCLUDE.finditer(text):
                seen += 1
                reason = wrong_include(root, source, match.group(1) or match.group(2))
                if reason:
                    problems.append(f"{relative}:{text.count(chr(10), 0, match.start()) + 1}: {reason}")
    return problems, seen


def self_test():
    """Each tree holds one file; True where its include must be refused."""
    cases = [
        ("shim/policy/calls/a.cc", '#include "ledger/x.h"', False),
        ("shim/policy/calls/a.cc", '#include "policy/contexts/x.h"', False),
        ("shim/policy/contexts/a.cc", '#include "policy/block_pool/x.h"', True),
        ("shim/policy/block_pool/a.cc", '#include "policy/driver_pools/x.h"', True),
        ("shim/policy/odd/a.cc", "", True),
        ("shim/hooks/device.cc", '#include "policy/calls/device_memory.h"', False),
        ("shim/hooks/device.cc", '#include "policy/calls/queries.h"', True),
        ("shim/ledger/a.cc", '#include "policy/calls/x.h"', True),
        ("shim/ledger/a.cc", '#include "../policy/calls/x.h"', True),
        ("pool/a.cc", '#include "shim/events/x.h"', True),
        ("shim/preload/a.cc", '#include "hook_table.inc"', False),
        ("shim/cli/a.cc", '#include "hooks/x.h"', True),
        ("shim/cli/a.cc", '#include "logs/x.h"', False),
        ("shim/logs/a.cc", '#include "cli/x.h"', True),
        ("shim/logs/a.cc", '#include "cli/base/x.h"', False),
        ("shim/logs/a.cc", '#include "cli/run/x.h"', True),
        ("shim/cli/base/a.cc", '#include "cli/run/x.h"', True),
        ("shim/cli/base/a.cc", '#include "logs/x.h"', True),
        ("shim/cli/run/a.cc", '#include "logs/x.h"', False),
        ("shim/cli/run/a.cc", '#include "cli/usage/x.h"', True),
        ("shim/cli/usage/a.cc", '#include "cli/run/x.h"', False),
        ("shim/cli/usage/a.cc", '#include "cli/doctor/x.h"', True),
        ("shim/cli/doctor/a.cc", '#include "cli/find/x.h"', True),
        ("shim/cli/find/a.cc", '#include "cli/x.h"', True),
        ("shim/cli/odd/a.cc", "", True),
        ("shim/policy/block_pool/a.cc", '#include "logs/x.h"', True),
        ("shim/policy/calls/a.cc", "#include <fmt/format.h>", True),
        ("shim/events/a.cc", "#include <fmt/format.h>", False),
        ("shim/driver/a.cc", "#include <cuda.h>", True),
        ("shim/runtime/a.cc", '#include "tests/x.h"', True),
        ("shim/driver/a.cc", '#include "base/lock.h"', False),
        ("shim/base/lock.h", '#include "driver/abi.h"', False),
        ("shim/base/lock.h", '#include "policy/calls/x.h"', True),
        ("shim/logs/a.cc", '#include "pool/x.h"', False),
        ("pool/a.cc", '#include "shim/logs/x.h"', True),
        ("pool/a.cc", "#include <CLI/CLI.hpp>", True),
        ("shim/odd/a.cc", "", True),
    ]
    wrong = []
    for path, line, refused in cases:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            targets = ["shim/" + box + "/x.h" for box in ARROWS] + ["pool/x.h", "tests/x.h", "shim/hook_table.inc", *ABIS,
                       "shim/base/lock.h", "shim/policy/calls/device_memory.h", "shim/policy/calls/queries.h"]
            for target in targets:
                (root / target).parent.mkdir(parents=True, exist_ok=True)
                (root / target).write_text("")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(line + "\n")
            if bool(check(root)[0]) != refused:
                wrong.append(f"self-test: {path} with {line!r} was {'let through' if refused else 'refused'}")
    return wrong, len(cases)


def main():
    if sys.argv[1:] == ["--self-test"]:
        problems, seen = self_test()
    else:
        root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent
        problems, seen = check(root)
    print("\n".join(problems + [f"layers: {seen} includes checked, {len(problems)} wrong"]))
    return 1 if problems or not seen else 0


sys.exit(main())
