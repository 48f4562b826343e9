#!/usr/bin/env python3
"""`ration ps`: its tables, JSON and metrics, and its messages where something cannot be read."""
import json
import os
import pathlib
import re
import stat
import subprocess

from members import FIRST, RATION, SECOND, TREE, Member, environment, ration
from harness import GIB, MIB, expect, expect_that, main

USAGE_ERRORS = [("ps", "--no-such-option"), ("ps", "word"), ("ps", "--json", "--prometheus"), ("ps", "--textfile"),
             ("ps", "--prometheus", "--textfile", "x"), ("top", "--interval", "0"), ("top", "--interval", "nan"),
             ("top", "--interval", "soon"), ("top", "--interval"), ("top", "word")]


def state(folder):
    return pathlib.Path(folder) / "state"  # the first member of a group creates it, with mode 0700


def two_members(folder):
    """A process of 1 GiB in a group and a tree, and one of 2 GiB in no group."""
    both = Member(state(folder), f"{8 * GIB},{12 * GIB}", f"{FIRST}={GIB}", "named=nightly", f"tree={TREE}")
    alone = Member(state(folder), "0", f"{SECOND}={2 * GIB}", "none")
    return both, alone


def no_processes(folder):
    for place in (folder, state(folder)):  # an empty folder, and a missing one
        done = ration(place, "ps")
        expect("stdout", done.stdout, "")
        expect("lines on stderr", len(done.stderr.splitlines()), 1)
        expect_that(done.stderr, str(place) in done.stderr)
        empty = ration(place, "ps", "--json")
        expect("stderr", empty.stderr, "")
        expect("object", [json.loads(empty.stdout)[key] for key in ("schema", "processes", "groups", "problems")],
               ["ration.ps/1", [], [], []])
        metrics = ration(place, "ps", "--prometheus").stdout.splitlines()
        expect("series", [line for line in metrics if not line.startswith("#")], [])
    expect_that("ration ps created a folder", not state(folder).exists())


def usage_errors(folder):
    for line in USAGE_ERRORS:
        done = ration(folder, *line, status=2)
        expect(f"stdout of {line}", done.stdout, "")
        expect(f"lines on stderr of {line}: {done.stderr}", len(done.stderr.splitlines()), 1)


def tables(folder):
    both, alone = two_members(folder)
    with both as first, alone as second:
        done = ration(state(folder), "ps")
        once = ration(state(folder), "top", "--once")
        piped = ration(state(folder), "top")
    expect("stderr", done.stderr, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    expect("titles", lines[0], "PID PROGRAM GROUP GPU RESERVED USED LIMIT PEAK FAILS AGE".split())
    expect("first process", lines[1][:-1], [str(second.pid), "member", "-", "99887766", "2.00GiB", "1.00GiB", "-", "2.00GiB", "1"])
    expect("second process", lines[2][:-1], [str(first.pid), "member", "nightly,tree:01234567", "1f2e3d4c", "1.00GiB", "512MiB",
                                             "8.00GiB", "1.00GiB", "1"])
    expect("groups", lines[3:], [[], "GROUP GPU LIMIT RESERVED FREE PROCESSES".split(),
                                 ["nightly", "1f2e3d4c", "12.0GiB", "1.00GiB", "11.0GiB", "1"],
                                 ["tree:01234567", "1f2e3d4c", "12.0GiB", "1.00GiB", "11.0GiB", "1"],
                                 ["-", "99887766", "-", "2.00GiB", "-", "1"]])
    without_age = [re.sub(r"\s+\d+[smhd]$", "", text, flags=re.M) for text in (done.stdout, once.stdout, piped.stdout)]
    expect("top --once", without_age[1], without_age[0])
    expect("top without a terminal", without_age[2], without_age[0])


def a_tree_with_a_guarantee(folder):
    """Who holds it for the tree has a row until a process of the tree has one, and again after that has ended."""
    def rows():
        seen = json.loads(ration(state(folder), "ps", "--json").stdout)
        group = next(each for each in seen["groups"] if each["group"] == "nightly")
        return [(each["pid"], each["reserved"], each["guarantee"], each["groups"][0]["claimed"]) for each in seen["processes"]], \
            {key: group[key] for key in ("processes", "reserved", "claimed", "guaranteed", "free")}

    alone = {"processes": 1, "reserved": 0, "claimed": 3 * GIB, "guaranteed": 3 * GIB, "free": 5 * GIB}
    with Member(state(folder), f"0,{8 * GIB}", f"{FIRST}={3 * GIB}", "named=nightly", f"for={TREE}") as holder:
        expect("the holder alone", rows(), ([(holder.pid, 0, 3 * GIB, 3 * GIB)], alone))
        with Member(state(folder), "0", f"{FIRST}={GIB}", "named=nightly", f"tree={TREE}") as first:
            expect("with a process", rows(), ([(first.pid, GIB, 3 * GIB, 3 * GIB)], alone | {"reserved": GIB}))
            titles, row, *_, group, _ = [line.split() for line in ration(state(folder), "ps").stdout.splitlines()]
        expect("titles", titles, "PID PROGRAM GROUP GPU RESERVED USED LIMIT PEAK GUARANTEE FAILS AGE".split())
        expect("figures", row[4:9], ["1.00GiB", "512MiB", "-", "1.00GiB", "3.00GiB"])
        expect("the group", group, ["nightly", "1f2e3d4c", "8.00GiB", "1.00GiB", "3.00GiB", "3.00GiB", "5.00GiB", "1"])
        expect("without it", rows(), ([(holder.pid, 0, 3 * GIB, 3 * GIB)], alone))


def as_json(folder):
    both, alone = two_members(folder)
    with both as first, alone:
        seen = json.loads(ration(state(folder), "ps", "--json").stdout)
        streamed = ration(state(folder), "top", "--once", "--json").stdout
    expect("processes", len(seen["processes"]), 2)
    process = next(each for each in seen["processes"] if each["pid"] == first.pid)
    expect("figures", {key: process[key] for key in ("uuid", "reserved", "used", "limit", "peak", "allocations", "failures", "uid")},
           {"uuid": FIRST, "reserved": GIB, "used": 512 * MIB, "limit": 8 * GIB, "peak": GIB, "allocations": 3, "failures": 1,
            "uid": os.geteuid()})
    expect("reasons", process["failures_by_reason"], {"limit": 0, "group": 1, "device": 0, "pool_holds": 0, "fault": 0})
    expect("groups", [(each["kind"], each["name"], each["limit"], each["limit_stated"]) for each in process["groups"]],
           [("named", "nightly", 12 * GIB, 12 * GIB), ("tree", TREE, 12 * GIB, 12 * GIB)])
    expect("namespace", process["pid_namespace"], os.stat("/proc/self/ns/pid").st_ino)
    expect("group", seen["groups"][0], {"group": "nightly", "name": "nightly", "kind": "named", "uuid": FIRST, "limit": 12 * GIB,
                                        "reserved": GIB, "claimed": GIB, "guaranteed": 0, "waiting": 0, "free": 11 * GIB,
                                        "processes": 1})
    expect("lines of top --once --json", len(streamed.splitlines()), 1)
    expect("the same processes", [each["identity"] for each in json.loads(streamed)["processes"]],
           [each["identity"] for each in seen["processes"]])


def as_metrics(folder):
    file = pathlib.Path(folder) / "ration.prom"
    file.write_text("old")
    both, alone = two_members(folder)
    with both as first, alone:
        metrics = ration(state(folder), "ps", "--prometheus").stdout
        done = ration(state(folder), "ps", "--textfile", str(file))
    expect("stdout of --textfile", done.stdout, "")
    expect("the file", file.read_text(), metrics)
    expect("its mode", stat.S_IMODE(file.stat().st_mode), 0o644)
    expect("files", sorted(path.name for path in pathlib.Path(folder).iterdir()), ["ration.prom", "state"])
    series = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if not line.startswith("#"))
    of_first = [name for name in series if f'pid="{first.pid}"' in name]
    expect("series of a process", len(of_first), 15)
    reserved = next(name for name in of_first if name.startswith("ration_memory_reserved_bytes"))
    expect_that(reserved, re.fullmatch(rf'ration_memory_reserved_bytes{{gpu="{FIRST}",pid="\d+",exe="[^"]*member",'
                                       rf'group="nightly,tree:01234567"}}', reserved))
    expect("reserved", series[reserved], str(GIB))
    refused = next(name for name in of_first if name.endswith('reason="group"}'))
    expect("refused", series[refused], "1")


def no_such_folder(folder):
    done = ration(state(folder), "ps", "--textfile", f"{folder}/missing/ration.prom", status=125)
    expect("stdout", done.stdout, "")
    expect_that(done.stderr, "ration.prom" in done.stderr)


def a_damaged_group(folder):
    """What can be read is shown; the damaged file is named."""
    with Member(state(folder), "0", f"{FIRST}={GIB}", "named=nightly"):
        (state(folder) / "group-broken").write_bytes(b"\0" * 65536)
        (state(folder) / "group-broken").chmod(0o600)
        done = ration(state(folder), "ps", status=1)
        seen = json.loads(ration(state(folder), "ps", "--json", status=1).stdout)
        ration(state(folder), "top", "--once", status=1)
    expect("processes and groups", len(done.stdout.splitlines()), 2 + 1 + 2)
    expect_that(done.stderr, "group-broken" in done.stderr and len(done.stderr.splitlines()) == 1)
    expect_that(seen["problems"], len(seen["problems"]) == 1 and "group-broken" in seen["problems"][0])


def an_unusable_folder(folder):
    """Other users could have written the files."""
    os.chmod(folder, 0o777)
    done = ration(folder, "ps", status=1)
    expect("stdout", done.stdout, "")
    expect_that(done.stderr, folder in done.stderr and len(done.stderr.splitlines()) == 1)


def killed_process(folder):
    """A killed process is not in the next snapshot, and neither is its group."""
    member = Member(state(folder), "0", f"{FIRST}={GIB}", "named=nightly")
    member.process.kill()
    member.process.wait()
    expect("stdout", ration(state(folder), "ps").stdout, "")
    expect("files", list(state(folder).iterdir()), [])
    member.process.stdout.close()


def a_full_disk(folder):
    with open("/dev/full", "wb") as full, Member(state(folder), "0", f"{FIRST}={GIB}", "none"):
        for line in (["ps"], ["ps", "--json"], ["ps", "--prometheus"], ["top", "--once"], ["top", "--json"]):
            done = subprocess.run([RATION, *line], env=environment(state(folder)), stdout=full, stderr=subprocess.PIPE, check=False)
            expect(f"status of {line}", done.returncode, 125)


main({"no processes": no_processes, "usage errors": usage_errors, "tables": tables,
      "a tree with a guarantee": a_tree_with_a_guarantee, "json": as_json, "metrics": as_metrics,
      "no folder for the metrics": no_such_folder, "a damaged group": a_damaged_group, "an unusable folder": an_unusable_folder,
      "a killed process": killed_process, "a full disk": a_full_disk})
