#!/usr/bin/env python3
"""A log that a full disk cuts: its end is there nevertheless, and says how many records were lost."""
import json
import pathlib
import re
import shutil
import subprocess

from harness import BUILD, HANG, PROGRAMS, command_environment, expect, expect_that, main, of_type, read_log

RATION = BUILD / "bin/ration"
CALLS = 6000  # a log of more than a megabyte
ROOM = 256 << 10


def run(folder, *command, before=(), log="run.jsonl"):
    return subprocess.run([*before, RATION, "run", "--sim", "2GiB", "--log", log, "--summary", f"{folder}/summary.json", "--", *map(str, command)],
                          cwd=folder, capture_output=True, text=True, timeout=HANG, env=command_environment(), stdin=subprocess.DEVNULL, check=False)


def is_complete_but_for_losses(folder, log, said, why):
    records = read_log(log)
    end = records[-1]
    expect("last record", end["t"], "end")
    expect("allocations", (end["allocs"], end["frees"]), (CALLS // 2, CALLS // 2))
    expect_that(f"lost: {end['dropped']}", end["dropped"] > CALLS // 4)
    expect("as counted where they are missing", sum(record["count"] for record in of_type(records, "dropped")), end["dropped"])
    known = len(of_type(records, "alloc")) + len(of_type(records, "free"))
    expect_that(f"{known} known and {end['dropped']} lost", 0 <= known + end["dropped"] - CALLS < 20)  # and slabs
    expect_that(f"no zeros: {log.read_bytes()[-80:]}", b"\0" not in log.read_bytes())
    expect_that(f"said: {said}", f"ration: the log is incomplete: {end['dropped']} records could not be written: {why}\n" in said)
    process, = json.loads((pathlib.Path(folder) / "summary.json").read_text())["processes"]
    expect("summary", (process["dropped"], process["dropped_reason"]), (end["dropped"], why))
    report = subprocess.run([RATION, "report", log], capture_output=True, text=True, timeout=HANG, check=False)
    expect_that(f"report: {report.stdout}", re.search(rf"lacks {end['dropped']} records", report.stdout))
    high = subprocess.run([RATION, "check", log, "--max-peak", "1MiB"], capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"check: {high.stdout}", high.returncode, 1)


def full_disk(folder):
    place = pathlib.Path(folder) / "place"
    place.mkdir()
    namespace = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size={ROOM} x {place} && "$0" "$@"; status=$?; cp {place}/* {folder}; exit $status']
    if not shutil.which("unshare") or subprocess.run([*namespace[:-1], f"mount -t tmpfs x {place}"], capture_output=True, check=False).returncode != 0:
        print("not tested: the kernel refuses a mount namespace")
        return
    done = run(folder, PROGRAMS / "counted", "counts", 1, CALLS, before=namespace, log=place / "run.jsonl")
    expect(f"status, {done.stderr}", done.returncode, 0)
    log = pathlib.Path(folder) / "run.jsonl"
    expect_that(f"{log.stat().st_size} bytes", ROOM // 2 < log.stat().st_size <= ROOM)
    is_complete_but_for_losses(folder, log, done.stderr, "No space left on device")


main({"full disk": full_disk})
