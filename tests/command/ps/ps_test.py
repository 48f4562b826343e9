#!/usr/bin/env python3
"""`ration ps`: its tables, JSON and metrics, and its messages where something cannot be read."""
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import stat
import subprocess

from members import FIRST, RATION, SECOND, TREE, Background, Member, environment, ration
from terminal import Terminal
from harness import GIB, HANG, MIB, PROGRAMS, SANITIZED, Failure, expect, expect_that, main

USAGE_ERRORS = [("ps", "--no-such-option"), ("ps", "word"), ("ps", "--json", "--prometheus"), ("ps", "--textfile"),
             ("ps", "--prometheus", "--textfile", "x"), ("top", "--interval", "0"), ("top", "--interval", "nan"),
             ("top", "--interval", "soon"), ("top", "--interval"), ("top", "word"), ("ps", "--watch=0"),
             ("ps", "--watch=soon"), ("ps", "--watch=nan"), ("ps", "--watch", "--prometheus"), ("ps", "--watch", "--textfile", "x"),
             ("ps", "--all=yes")]


USER = pwd.getpwuid(os.geteuid()).pw_name
SHARED_MEMORY = pathlib.Path("/dev/shm")


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
        expect_that(done.stderr, f"there is no folder {place}, which RATION_STATE_DIR" in done.stderr if place != folder else f"looked in {place}" in done.stderr)
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
    expect("stderr", done.stderr, "")
    lines = [line.split() for line in done.stdout.splitlines()]
    expect("titles", lines[0], "PID USER GROUP GPU RESERVED USED LIMIT PEAKRES PEAKUSED FAILS AGE COMMAND".split())
    expect("first process", lines[1][:10], [str(second.pid), USER, "-", "99887766", "2.00GiB", "1.00GiB", "-", "2.00GiB", "1.50GiB", "1"])
    expect("its command", lines[1][11:], ["member", "0", f"{SECOND}={2 * GIB}", "none"])
    expect("second process", lines[2][:10], [str(first.pid), USER, "nightly,tree:01234567", "1f2e3d4c", "1.00GiB", "512MiB",
                                              "8.00GiB", "1.00GiB", "768MiB", "1"])
    expect("groups", lines[3:], [[], "GROUP GPU LIMIT RESERVED FREE PROCESSES".split(),
                                 ["nightly", "1f2e3d4c", "12.0GiB", "1.00GiB", "11.0GiB", "1"],
                                 ["tree:01234567", "1f2e3d4c", "12.0GiB", "1.00GiB", "11.0GiB", "1"]])  # no group is none


def a_tree_with_a_guarantee(folder):
    """Who holds it for the tree has a row until a process of the tree has one, and again after that has ended."""
    def rows():
        seen = json.loads(ration(state(folder), "ps", "--json").stdout)
        group = next(each for each in seen["groups"] if each["group"] == "nightly")
        return [(each["pid"], each["reserved_bytes"], each["guarantee"], each["groups"][0]["process_claimed_bytes"]) for each in seen["processes"]], \
            {key: group[key] for key in ("process_count", "reserved_bytes", "claimed_bytes", "guaranteed_bytes", "free_bytes")}

    alone = {"process_count": 1, "reserved_bytes": 0, "claimed_bytes": 3 * GIB, "guaranteed_bytes": 3 * GIB, "free_bytes": 5 * GIB}
    with Member(state(folder), f"0,{8 * GIB}", f"{FIRST}={3 * GIB}", "named=nightly", f"for={TREE}") as holder:
        expect("the holder alone", rows(), ([(holder.pid, 0, 3 * GIB, 3 * GIB)], alone))
        with Member(state(folder), "0", f"{FIRST}={GIB}", "named=nightly", f"tree={TREE}") as first:
            expect("with a process", rows(), ([(first.pid, GIB, 3 * GIB, 3 * GIB)], alone | {"reserved_bytes": GIB}))
            titles, row, *_, group, _ = [line.split() for line in ration(state(folder), "ps").stdout.splitlines()]
        expect("titles", titles, "PID USER GROUP GPU RESERVED USED LIMIT PEAKRES PEAKUSED GUARANTEE FAILS AGE COMMAND".split())
        expect("figures", row[4:10], ["1.00GiB", "512MiB", "-", "1.00GiB", "768MiB", "3.00GiB"])
        expect("the group", group, ["nightly", "1f2e3d4c", "8.00GiB", "1.00GiB", "3.00GiB", "3.00GiB", "5.00GiB", "1"])
        expect("without it", rows(), ([(holder.pid, 0, 3 * GIB, 3 * GIB)], alone))


def as_json(folder):
    both, alone = two_members(folder)
    with both as first, alone:
        seen = json.loads(ration(state(folder), "ps", "--json").stdout)
    expect("processes", len(seen["processes"]), 2)
    process = next(each for each in seen["processes"] if each["pid"] == first.pid)
    expect("figures", {key: process[key] for key in ("uuid", "reserved_bytes", "used_bytes", "limit", "reserved_peak_bytes", "peak_bytes", "allocs", "refusals", "uid", "user")},
           {"uuid": FIRST, "reserved_bytes": GIB, "used_bytes": 512 * MIB, "limit": 8 * GIB, "reserved_peak_bytes": GIB, "peak_bytes": 768 * MIB, "allocs": 3,
            "refusals": 1, "uid": os.geteuid(), "user": USER})
    expect("command", process["command"].split()[1:], [f"{8 * GIB},{12 * GIB}", f"{FIRST}={GIB}", "named=nightly", f"tree={TREE}"])
    expect("device", {key: value for key, value in next(each for each in seen["devices"] if each["uuid"] == FIRST).items() if key != "gpu_index"},
           {"uuid": FIRST, "total_bytes": 16 * GIB, "reserved_bytes": GIB, "used_bytes": 512 * MIB, "process_count": 1, "name": None, "overhead_bytes": None, "others_bytes": None, "free_bytes": None,
            "utilisation_percent": None, "temperature_celsius": None})
    expect("reasons", process["refusals_by_reason"], {"limit": 0, "group": 1, "device": 0, "pool_holds": 0, "fault": 0})
    expect("groups", [(each["kind"], each["name"], each["limit"], each["limit_stated"]) for each in process["groups"]],
           [("named", "nightly", 12 * GIB, 12 * GIB), ("tree", TREE, 12 * GIB, 12 * GIB)])
    expect("namespace", process["pid_namespace"], os.stat("/proc/self/ns/pid").st_ino)
    expect("group", seen["groups"][0], {"group": "nightly", "name": "nightly", "kind": "named", "uuid": FIRST, "gpu_index": None, "user": None,
                                        "limit": 12 * GIB, "used_bytes": 512 * MIB, "reserved_bytes": GIB, "claimed_bytes": GIB, "guaranteed_bytes": 0, "waiting_processes": 0, "free_bytes": 11 * GIB,
                                        "process_count": 1})


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
    expect("series of a process", len(of_first), 16)
    reserved = next(name for name in of_first if name.startswith("ration_memory_reserved_bytes"))
    expect_that(reserved, re.fullmatch(rf'ration_memory_reserved_bytes{{gpu="{FIRST}",pid="\d+",exe="[^"]*member",'
                                       rf'group="nightly"}}', reserved))
    expect("reserved", series[reserved], str(GIB))
    peaks = {name.split("{")[0]: series[name] for name in of_first if "peak" in name}
    expect("peaks", peaks, {"ration_memory_reserved_peak_bytes": str(GIB), "ration_memory_used_peak_bytes": str(768 * MIB)})
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
    expect("processes and groups", len(done.stdout.splitlines()), 2 + 1 + 2)
    expect_that(done.stderr, "group-broken" in done.stderr and len(done.stderr.splitlines()) == 1)
    expect_that(seen["problems"], len(seen["problems"]) == 1 and "group-broken" in seen["problems"][0]["what"])


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


STAMP = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\n")


class Watch:
    """`ration ps --watch`, line by line."""

    def __init__(self, folder, *arguments):
        self.process = subprocess.Popen([RATION, "ps", *arguments], env=environment(folder), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(HANG)
        self.process.stdout.close()
        self.process.stderr.close()

    def line(self):
        return self.process.stdout.readline()


def watched(folder):
    """The tables again and again, the time before and an empty line between; it ends by a signal, or when the reader has gone."""
    with Member(state(folder), "0", f"{FIRST}={GIB}", "named=nightly") as member:
        with Watch(state(folder), "--watch", "100ms") as watch:
            for _ in range(3):
                stamp, *seen = [watch.line() for _ in range(7)]
                expect_that(f"the time: {stamp}", STAMP.fullmatch(stamp))
                expect("titles", [seen[0].split()[0], seen[3].split()[0]], ["PID", "GROUP"])
                expect("process", seen[1].split()[0], str(member.pid))
                expect("empty lines", [seen[2], seen[5]], ["\n", "\n"])
            expect_that("colour where there is no terminal", "\x1b" not in "".join(seen))
            watch.process.send_signal(signal.SIGINT)
            expect("status", watch.process.wait(HANG), -signal.SIGINT)
        with Watch(state(folder), "--watch", "0.1") as watch:
            expect("titles", [watch.line() and watch.line().split()[0]], ["PID"])
            watch.process.stdout.close()
            expect("status once the reader has gone", watch.process.wait(HANG), 0)
            expect("stderr", watch.process.stderr.read(), "")
        with Watch(state(folder), "--watch=0.1", "--json") as watch:
            seen = [json.loads(watch.line()) for _ in range(3)]
            watch.process.stdout.close()
            expect("status of the stream once the reader has gone", watch.process.wait(HANG), 0)
            expect("stderr of the stream", watch.process.stderr.read(), "")
        expect("lines of the stream", [(each["schema"], [row["pid"] for row in each["processes"]]) for each in seen],
               [("ration.ps/1", [member.pid])] * 3)
        expect_that("increasing times", seen[0]["unix_ns"] < seen[1]["unix_ns"] < seen[2]["unix_ns"])
        with Watch(state(folder), "--watch") as watch:  # each 2 seconds
            expect("titles", [watch.line() and watch.line().split()[0]], ["PID"])


def on_a_terminal(folder):
    """Names are as wide as the terminal shows them, and printable ASCII where its locale is not of UTF-8."""
    name = pathlib.Path(folder) / "\u65e5\u672c\u8a9e\u306e\u30d7\u30ed\u30b0\u30e9\u30e0\u306e\u540d\u524d"
    shutil.copy(PROGRAMS / "member", name)
    with Background([name, "0", f"{FIRST}={GIB}", "none"], environment(state(folder))):
        for locale, shown in (("C.UTF-8", "\u65e5\u672c\u8a9e"), ("C", "\\xe6\\x97")):
            with Terminal(state(folder), verb="ps", columns=100, LC_ALL=locale) as terminal:
                lines = terminal.await_shown(shown)
                expect_that(f"the line ends at the edge: {lines}", lines[1].endswith("+") and lines[2] == "")
                terminal.process.wait(HANG)


def of_a_simulated_machine(folder):
    """Within `ration run --sim` devices have the numbers of that machine, whatever the program may see."""
    command = (f"for device in 2 0; do CUDA_VISIBLE_DEVICES=$device {PROGRAMS / 'holder'} 1 {GIB} {64 * GIB} <{folder}/hold >{folder}/said$device & done;"
               f"exec 3>{folder}/hold; for device in 2 0; do until grep -qs ready {folder}/said$device; do :; done; done;"
               f"CUDA_VISIBLE_DEVICES=2 {RATION} ps --json")
    os.mkfifo(f"{folder}/hold")
    done = ration(state(folder), "run", "-q", "--sim", "3x16GiB", "--mode", "direct", "--", "sh", "-c", command)
    seen = json.loads(done.stdout)
    expect("devices", [each["gpu_index"] for each in seen["devices"]], [0, 1, 2])
    expect("processes", sorted(each["gpu_index"] for each in seen["processes"]), [0, 2])


def free_user():
    """A user without processes of a state folder."""
    for number in range(61000, 65000):
        if not (SHARED_MEMORY / f"ration-{number}").exists():
            return number
    raise Failure("no free user")


def for_user(user, *arguments):
    """A member that runs as another user, and the place of its state folder."""
    folder = SHARED_MEMORY / f"ration-{user}"
    return folder, Background(["setpriv", f"--reuid={user}", "--clear-groups", PROGRAMS / "member", *arguments], environment(folder))


def all_users(folder):
    """Root sees the processes and groups of each user's folder, with the user; others only those that they may read."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        print("skipped: users' folders are read by root, with setpriv for the test")
        return
    users, folders, members = [], [], []
    try:
        for size in (GIB, 2 * GIB):
            users.append(free_user())
            place, member = for_user(users[-1], "0", f"{FIRST}={size}", "named=nightly")
            folders.append(place)
            members.append(member)
        with Member(state(folder), "0", f"{SECOND}={GIB}", "named=own") as own:
            mine = json.loads(ration(state(folder), "ps", "--json").stdout)
            seen = json.loads(ration(state(folder), "ps", "--json", "--all", status=None).stdout)
            table = ration(state(folder), "ps", "--all", status=None).stdout
            metrics = ration(state(folder), "ps", "--prometheus", "--all", status=None).stdout
            as_other = subprocess.run(["setpriv", f"--reuid={users[0]}", "--clear-groups", RATION, "ps", "--all", "--json"],
                                      env=environment(folders[0]), capture_output=True, text=True, check=False)
        expect("without --all", [row["pid"] for row in mine["processes"]], [own.pid])
        wanted = {(members[0].process.pid, str(users[0]), GIB), (members[1].process.pid, str(users[1]), 2 * GIB), (own.pid, USER, GIB)}
        expect_that(f"{wanted} in {seen}", wanted <= {(row["pid"], row["user"], row["reserved_bytes"]) for row in seen["processes"]})
        expect("groups", {(row["group"], row["user"]) for row in seen["groups"] if row["user"] in {str(user) for user in users}},
               {("nightly", str(user)) for user in users})
        for user in users:
            expect_that(f"{user} in both tables of {table}", len(re.findall(rf"(?m)^(?: *\d+ )?{user} ", table)) == 2)
            expect_that(metrics, f'group="nightly",user="{user}"}}' in metrics)
        theirs = json.loads(as_other.stdout)
        expect("status for another user", as_other.returncode, 1)
        expect("what another user sees", [row["pid"] for row in theirs["processes"]], [members[0].process.pid])
        expect_that(theirs["problems"], any(str(folders[1]) in problem["what"] for problem in theirs["problems"]))
    finally:
        for member in members:
            member.__exit__()
        for place in folders:
            shutil.rmtree(place, ignore_errors=True)


def a_folder_in_anothers_name(folder):
    """It is named, and not read: its owner can write what he wants."""
    if os.geteuid() != 0:
        print("skipped: only root makes folders for others")
        return
    user = free_user()
    place = SHARED_MEMORY / f"ration-{user}"
    place.mkdir(mode=0o700)
    try:
        os.chown(place, user + 1, -1)
        seen = json.loads(ration(state(folder), "ps", "--all", "--json", status=1).stdout)
        problem, = [each["what"] for each in seen["problems"] if str(place) in each["what"]]
        expect_that(problem, f"belongs to user {user + 1}" in problem)
    finally:
        place.rmdir()


def a_full_disk(folder):
    with open("/dev/full", "wb") as full, Member(state(folder), "0", f"{FIRST}={GIB}", "none"):
        for line in (["ps"], ["ps", "--json"], ["ps", "--prometheus"], ["ps", "--watch", "--json"]):
            done = subprocess.run([RATION, *line], env=environment(state(folder)), stdout=full, stderr=subprocess.PIPE, check=False)
            expect(f"status of {line}", done.returncode, 125)


main({"no processes": no_processes, "usage errors": usage_errors, "tables": tables,
      "a tree with a guarantee": a_tree_with_a_guarantee, "json": as_json, "metrics": as_metrics,
      "no folder for the metrics": no_such_folder, "a damaged group": a_damaged_group, "an unusable folder": an_unusable_folder,
      "a killed process": killed_process, "watched": watched, "on a terminal": on_a_terminal,
      # `ration run` preloads no sanitizer's runtime into what it starts.
      **({} if SANITIZED else {"of a simulated machine": of_a_simulated_machine}), "all users": all_users,
      "a folder in another's name": a_folder_in_anothers_name, "a full disk": a_full_disk})
