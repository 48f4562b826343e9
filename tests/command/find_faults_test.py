#!/usr/bin/env python3
"""`ration find-faults` refuses each allocation in turn, and tells which refusal a program does not survive."""
import json
import os
import pathlib
import subprocess

from harness import BUILD, HANG, MIB, PROGRAMS, command_environment, expect, expect_ended, expect_that, main
from refused_line import refused

RATION = BUILD / "bin/ration"
ADD_VECTORS = BUILD / "examples/planted_fault/add_vectors"
STEPS = [PROGRAMS / "steps", "init", "context=0", "alloc=1m", "managed=2m", "alloc=3m"]


def find_faults(folder, *words, status=0):
    """The object that --json prints. No log or other file is left."""
    temporary = pathlib.Path(folder) / "tmp"
    temporary.mkdir(exist_ok=True)
    environment = command_environment() | {"TMPDIR": str(temporary)}
    done = subprocess.run([RATION, "find-faults", "--sim", "1GiB", "--json", *map(str, words)], env=environment, cwd=folder,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"status, stderr {done.stderr!r}", done.returncode, status)
    expect("what is left", list(temporary.iterdir()), [])
    return json.loads(done.stdout) if done.stdout else done.stderr


def outcomes(found):
    expect("nth", [each["nth"] for each in found["runs"]], list(range(1, len(found["runs"]) + 1)))
    return [each["outcome"] for each in found["runs"]]


def planted(folder):
    found = find_faults(folder, "--", ADD_VECTORS, status=1)
    expect("outcomes", outcomes(found), ["error", "error", "crash"])
    expect("calls", {(each["api"], each["refused_bytes"]) for each in found["runs"]}, {("cuMemAlloc_v2", 16 * MIB)})
    expect("status and signal", [(each["status"], each["signal"]) for each in found["runs"]], [(1, 0), (1, 0), (139, 11)])
    expect("counts", (found["crash"], found["error"], found["survived"], found["cut"]), (1, 2, False, False))


def as_table(_):
    done = subprocess.run([RATION, "find-faults", "--sim", "1GiB", "--", ADD_VECTORS], env=command_environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=False)
    lines = done.stdout.splitlines()
    again = f"ration run --fail nth=3 --sim 1GiB -- {ADD_VECTORS}"
    expect("status, stderr", (done.returncode, done.stderr), (1, f"ration: find-faults: to see it again: {again}\n"))
    done_again = subprocess.run([RATION, *again.split()[1:]], env=command_environment(), stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG,
                                check=False)
    expect("status of that", done_again.returncode, 139)
    expect("rows", [line.split()[:4] for line in lines[1:4]],
           [[str(nth), "cuMemAlloc_v2", "16MiB", "CRASH" if nth == 3 else "error"] for nth in (1, 2, 3)])
    expect_that(lines[-1], lines[-1].startswith("3 allocations refused") and lines[-1].endswith(": 2 errors, 1 crash"))


def differs(folder):
    """A program that goes on without the memory, and prints so."""
    found = find_faults(folder, "--", *STEPS)
    expect("outcomes", outcomes(found), ["differs"] * 3)
    expect("calls", [(each["api"], each["refused_bytes"]) for each in found["runs"]],
           [("cuMemAlloc_v2", MIB), ("cuMemAllocManaged", 2 * MIB), ("cuMemAlloc_v2", 3 * MIB)])


def prints_nothing(folder):
    found = find_faults(folder, "--", "sh", "-c", '"$@" >/dev/null', "sh", *STEPS)
    expect("outcomes", outcomes(found), ["ok"] * 3)


def never_the_same(folder):
    """Output that differs anyway says nothing."""
    found = find_faults(folder, "--", "sh", "-c", 'echo $$; "$@"', "sh", *STEPS)
    expect("outcomes", (found["compared"], outcomes(found)), (False, ["ok"] * 3))


def hangs(folder):
    os.mkfifo(pathlib.Path(folder) / "never")
    script = 'if "$@" | grep -q " 2$"; then echo $$ >>pids; read x <never; fi'
    found = find_faults(folder, "--first", "1", "--timeout", "2s", "--", "sh", "-c", script, "sh", *STEPS, status=1)
    expect("outcomes", (outcomes(found), found["hang"], found["cut"]), (["hang"], 1, True))
    for pid in (pathlib.Path(folder) / "pids").read_text().split():
        expect_ended(pid)


def first(folder):
    found = find_faults(folder, "--first", "2", "--", ADD_VECTORS)
    expect("outcomes", (outcomes(found), found["cut"], found["survived"]), (["error"] * 2, True, True))


def in_a_child(folder):
    """The log of a second process is looked at, too."""
    found = find_faults(folder, "--", "sh", "-c", '"$@" 2>&1 | cat', "sh", ADD_VECTORS)
    expect("outcomes", outcomes(found), ["differs"] * 3)


def no_allocation(folder):
    found = find_faults(folder, "--", "true")
    expect("outcomes", (outcomes(found), found["cut"]), ([], False))


def fails_anyway(folder):
    said = find_faults(folder, "--", "sh", "-c", "echo words >&2; exit 3", status=125)
    expect_that(said, "words\n" in said and "fails with nothing refused: exit status 3" in said)


main({"a planted fault": planted,
      "as a table": as_table,
      "another output": differs,
      "no output": prints_nothing,
      "output that is never the same": never_the_same,
      "a hang": hangs,
      "--first": first,
      "a process of a shell": in_a_child,
      "no allocation": no_allocation,
      "a command that fails anyway": fails_anyway,
      "no command": refused(["find-faults"], "no command"),
      "--fail": refused(["find-faults", "--fail", "nth=1", "--", "true"], "--fail cannot be given"),
      "a wrong --first": refused(["find-faults", "--first", "0", "--", "true"], "--first"),
      "a wrong --timeout": refused(["find-faults", "--timeout", "0", "--", "true"], "--timeout")})
