#!/usr/bin/env python3
"""`--log-size`: parts of a log follow one another, and readers take the last two for one."""
import json
import os
import pathlib
import signal
import subprocess

from harness import BUILD, HANG, LIBRARIES, MIB, clean_environment, expect, expect_that, main
import log_schema

RATION = BUILD / "bin/ration"
SIZE = {"SIMCUDA_DEVICES": "2GiB", "RATION_LIMIT": "1GiB", "RATION_LOG_SIZE": "1MiB"}


def lines_of(path):
    text = path.read_text()
    expect_that(f"{path.name} ends with a line", text.endswith("\n"))
    return [json.loads(line) for line in text.splitlines()]


def parts_of(folder):
    """Records of both parts; each is as the schema says, and the second goes on where the first ends."""
    parts = [lines_of(pathlib.Path(folder) / name) for name in ("run.jsonl.previous", "run.jsonl")]
    for records in parts:
        expect("what is wrong", next(filter(None, map(log_schema.problem, records)), None), None)
        first = records[0].get("first_seq", 1)
        expect("numbers", [record["seq"] for record in records[1:]], list(range(first, first + len(records) - 1)))
    before, after = parts
    expect("part", after[0]["part"], before[0].get("part", 1) + 1)
    expect("first of the last part", after[0]["first_seq"], before[-1]["seq"] + 1)
    return parts


def threads(folder, **more):
    done = subprocess.run([BUILD / "tests/preload/programs/callers", "threads"], timeout=HANG, capture_output=True, text=True,
                          env=clean_environment() | SIZE | more | {
                              "LD_PRELOAD": LIBRARIES, "RATION_LOG": folder + "/run.jsonl",
                              "LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim"), "RATION_STATE_DIR": folder + "/state"}, check=False)
    expect(f"status, stderr {done.stderr!r}", done.returncode, 0)


def report(folder, *arguments):
    done = subprocess.run([RATION, "report", folder + "/run.jsonl", *arguments], capture_output=True, text=True, timeout=HANG,
                          check=False)
    expect(f"status, stderr {done.stderr!r}", done.returncode, 0)
    return done.stdout


def parts(folder):
    threads(folder)
    before, after = parts_of(folder)
    for name in ("run.jsonl.previous", "run.jsonl"):
        expect_that("no larger than asked", os.stat(folder + "/" + name).st_size <= MIB)
    expect("the end", after[-1]["t"], "end")
    expect("what the end counts", after[-1]["allocs"], 16000)
    document = json.loads(report(folder, "--json"))
    read = sum(record["t"] == "alloc" for record in before + after)
    end = after[-1]
    device = document["logs"][0]["devices"][0]
    expect("peak, as the end has it", (device["peak_bytes"], device["reserved_peak_bytes"]), (end["peak"][0], end["reserved_peak"][0]))
    expect("allocations, as the end has them", document["allocs"], end["allocs"])
    expect_that("more than were read", read < end["allocs"])
    left = [sum(leak[key] for leak in document["leaks"]) for key in ("count", "bytes")]
    expect("not freed", left, [end["live"][0]["count"], end["live"][0]["bytes"]])
    checked = subprocess.run([RATION, "check", folder + "/run.jsonl", "--no-leaks", "--max-peak", "1MiB"], capture_output=True,
                             text=True, check=False)
    expect("conditions that do not hold", (checked.returncode, len(checked.stdout.splitlines())), (1, 2))
    replayed = subprocess.run([RATION, "replay", folder + "/run.jsonl", "--find-min", "--json"], capture_output=True, text=True,
                              check=False)
    expect("exact", json.loads(replayed.stdout)["exact"], False)
    expect("what is gone", document["logs"][0]["dropped"], before[0]["first_seq"] - 1)
    expect_that("said", f"the log lacks {before[0]['first_seq'] - 1} records" in report(folder))


def stacks(folder):
    """Every stack that is used in what is left is in what is left."""
    threads(folder, RATION_STACKS="native")
    nodes, ids = {}, []
    for record in sum(parts_of(folder), []):
        if record["t"] == "stack":
            expect_that(f"{record} has a number of its own", record["id"] not in nodes)
            nodes[record["id"]] = record
        elif "stack" in record:
            expect_that(f"stack of {record}", record["stack"] in nodes)
            ids.append(record["stack"])
    expect_that("stacks of both parts", len(set(ids)) >= 4)
    names = {leak["frames"][0]["function"] for leak in json.loads(report(folder, "--json"))["leaks"] if leak["frames"]}
    expect("innermost functions", names, {"by_left", "by_right"})


def foreign_previous(folder):
    """A file of that name that is no log stays as it is, and the log goes on in one piece."""
    kept = pathlib.Path(folder) / "run.jsonl.previous"
    kept.write_text("my notes\n")
    threads(folder)
    expect("the file", kept.read_text(), "my notes\n")
    records = lines_of(pathlib.Path(folder) / "run.jsonl")
    expect("allocations", sum(record["t"] == "alloc" for record in records), 16000)


def left_by_a_kill(folder):
    """A part that was begun and never named is begun again."""
    fresh = pathlib.Path(folder) / "run.jsonl.new"
    fresh.write_text('{"t":"meta","schema":"ration.events/1","tree":"x"}\n')
    threads(folder)
    parts_of(folder)
    expect_that("it is gone", not fresh.exists())


def of_another_run(folder):
    """A part of another run is not read."""
    threads(folder)
    path = pathlib.Path(folder) / "run.jsonl.previous"
    records = lines_of(path)
    records[0]["start_unix_ns"] += 1
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    last = lines_of(pathlib.Path(folder) / "run.jsonl")
    document = json.loads(report(folder, "--json"))
    expect("what is gone", document["logs"][0]["dropped"], last[0]["first_seq"] - 1)


def killed(folder):
    """Whenever the process dies, what is there is whole."""
    for after in range(1, 30):
        for path in pathlib.Path(folder).glob("run.jsonl*"):
            path.unlink()
        child = subprocess.Popen([BUILD / "tests/preload/programs/callers", "threads"], stdout=subprocess.DEVNULL,
                                 env=clean_environment() | SIZE | {
                                     "LD_PRELOAD": LIBRARIES, "RATION_LOG": folder + "/run.jsonl",
                                     "LD_LIBRARY_PATH": str(BUILD / "lib/ration/sim"), "RATION_STATE_DIR": folder + "/state"})
        wanted = after * (100 << 10)
        while child.poll() is None and bytes_in(folder) < wanted:
            pass
        child.send_signal(signal.SIGKILL)
        child.wait()
        for path in pathlib.Path(folder).glob("run.jsonl*"):
            if path.name != "run.jsonl.new" or path.stat().st_size != 0:  # nothing is in it yet
                lines_of(path)


def bytes_in(folder):
    """Of files that may be renamed meanwhile."""
    total = 0
    for path in pathlib.Path(folder).glob("run.jsonl*"):
        try:
            total += os.stat(path).st_size
        except FileNotFoundError:
            pass
    return total


def a_share(folder):
    done = subprocess.run([RATION, "run", "--log-size", "10%", "--log", folder + "/x.jsonl", "--", "true"], capture_output=True,
                          text=True, check=False)
    expect("status", done.returncode, 125)
    expect_that(f"said: {done.stderr!r}", "a percentage has no meaning here" in done.stderr)


main({"parts": parts, "stacks": stacks, "foreign_previous": foreign_previous, "left_by_a_kill": left_by_a_kill,
      "of_another_run": of_another_run, "killed": killed, "a_share": a_share})
