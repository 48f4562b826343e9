#!/usr/bin/env python3
"""`ration diff`: its figures are the differences of two reports, and a caller whose lines moved stays the same one."""
import json
import pathlib
import subprocess

from convert_test import RATION, SETTINGS, ration, report_of
from harness import MIB, clean_environment, expect, expect_that, main, run
from log_of_every_kind import END, block, end_of, stack, write

MAIN = ("main", "/opt/train.py", 3)
REFUSAL = {"t": "oom", "tid": 7, "dev": 0, "api": "cuMemAlloc_v2", "req": 1, "reason": "limit", "used": 0, "limit": 1,
           "device_free": 0, "largest_free": 0, "reserved": 0, "quarantined": 0, "capturing": False}


def made(folder, *last):
    """The second loads more, from a line further down; keeps a block more, by a new caller; no longer calls `old`."""
    first = write(pathlib.Path(folder) / "a.jsonl", *stack(1, MAIN, ("load", "/opt/train.py", 20)), *stack(2, MAIN, ("old", "/opt/old.py", 1)),
                  block(0x1000, 4 * MIB, stack=11), block(0x2000, 1 * MIB, stack=21), end_of(0x2000), end_of(0x1000), *last)
    second = write(pathlib.Path(folder) / "b.jsonl", *stack(1, MAIN, ("load", "/opt/train.py", 27)), *stack(2, MAIN, ("keep", "/opt/keep.py", 1)),
                   block(0x1000, 6 * MIB, stack=11), block(0x3000, 2 * MIB, dev=1, stack=11), end_of(0x1000), REFUSAL, block(0x2000, 3 * MIB, stack=21), *last)
    return first, second


def figures(before, after):
    return {"before": before, "after": after, "change": after - before}


def of(row, key):
    return {side: row[side][key] for side in ("before", "after", "change")}


def documented(folder):
    first, second = made(folder, END)
    document = json.loads(ration("diff", first, second, "--json"))
    expect("schema", (document["schema"], document["by"], document["holds"]), ("ration.diff/1", "caller", None))
    device = document["devices"][0]
    expect("figures", {key: of(device, key) for key in ("peak_bytes", "allocs", "frees", "refusals", "live_blocks", "live_bytes")},
           {"peak_bytes": figures(5 * MIB, 6 * MIB), "allocs": figures(2, 2), "frees": figures(2, 1), "refusals": figures(0, 1),
            "live_blocks": figures(0, 1), "live_bytes": figures(0, 3 * MIB)})
    expect("callers", [(each["caller"], each["occurs"], each["change"]["at_peak_bytes"], each["change"]["live_bytes"],
                        each["after"]["requested_bytes"]) for each in device["callers"]],
           [("keep (keep.py), from main (train.py)", "new", 0, 3 * MIB, 3 * MIB - 1),
            ("load (train.py), from main (train.py)", "both", 2 * MIB, 0, 6 * MIB - 1),
            ("old (old.py), from main (train.py)", "gone", -1 * MIB, 0, 0)])
    expect("the other device", of(document["devices"][1], "peak_bytes"), figures(0, 2 * MIB))


def printed(folder):
    first, second = made(folder, END)
    lines = ration("diff", first, second).splitlines()
    expect("logs", lines[:2], [f"A: {first}", f"B: {second}"])
    rows = [line.split() for line in lines]
    expect_that(f"the peak is not in {lines}", ["peak", "used", "5MiB", "6MiB", "+1MiB", "+20%"] in rows)
    expect_that(f"a new caller is not in {lines}", any("+3MiB" in line and " new " in line and "keep (keep.py)" in line for line in lines))
    expect_that(f"one that is gone is not in {lines}", any("-1MiB" in line and " gone " in line and "old (old.py)" in line for line in lines))
    expect_that("the same logs", "no caller changed" in ration("diff", first, first))


def by_library(folder):
    first, second = made(folder, END)
    document = json.loads(ration("diff", first, second, "--json", "--by", "library"))
    expect("libraries", [(each["caller"], each["occurs"]) for each in document["devices"][0]["callers"]], [("the program", "both")])


def grown(folder):
    first, second = made(folder, END)
    for limit, status in (("20%", 1), ("1024KiB", 1), ("2MiB", 0), (str(2 * MIB - 1), 1), ("0.9", 1), ("0%", 1), ("512k", 1), ("20 %", 1)):
        said = ration("diff", first, second, "--fail-above", limit, status=status).splitlines()
        expect(f"reasons with {limit}", [line for line in said if line.startswith("--fail-above: device 1: ")],
               [f"--fail-above: device 1: the peak has grown by 2MiB (2097152 bytes), more than {limit}"] if status else [])
    died = write(pathlib.Path(folder) / "died.jsonl", block(0x1000, 1 * MIB), REFUSAL, END)
    expect("one that was refused", json.loads(ration("diff", first, died, "--json", "--fail-above", "0%", status=1))["reasons"],
           [f"{died}: its last request was refused: what it would have used is unknown"])
    ration("diff", died, first, "--fail-above", "1GiB")
    expect("no growth", json.loads(ration("diff", second, first, "--json", "--fail-above", "0%"))["holds"], True)
    expect("growth", json.loads(ration("diff", first, second, "--json", "--fail-above", "0%", status=1))["holds"], False)


def unknown_peak(folder):
    """Where records are missing and no end has the peak, it is null, and no growth of it is ruled out."""
    whole, _ = made(folder, END)
    (pathlib.Path(folder) / "no_end").mkdir()
    _, killed = made(pathlib.Path(folder) / "no_end")
    lost = write(pathlib.Path(folder) / "lost.jsonl", block(0x1000, 4 * MIB), {"t": "dropped", "count": 3})
    alone = write(pathlib.Path(folder) / "alone.jsonl")
    for log, why in ((lost, "the log lacks 3 records and has no end record"), (alone, "the log has no end record")):
        for names in ((whole, log), (log, whole)):
            said = ration("diff", *names, "--fail-above", "1GiB", status=1)
            expect_that(said, f"--fail-above: {log}: {why}: the peak is unknown\n" in said)
            document = json.loads(ration("diff", *names, "--json", "--fail-above", "1GiB", status=1))
            expect("holds", (document["holds"], document["reasons"]), (False, [f"{log}: {why}: the peak is unknown"]))
            peak = of(document["devices"][0], "peak_bytes")
            expect("peak", (peak["before" if names[0] == log else "after"], peak["change"]), (None, None))
            expect("the other one's", peak["after" if names[0] == log else "before"], 5 * MIB)
    ration("diff", whole, killed, "--fail-above", "1GiB", status=1)
    said = ration("diff", whole, killed)
    rows = [line.split() for line in said.splitlines()]
    expect_that(said, f"B: {killed}, no end record" in said and ["peak", "used", "5MiB", "at", "least", "6MiB", "unknown"] in rows)
    expect_that(said, ["allocations", "2", "at", "least", "2", "unknown"] in rows and ["blocks", "not", "freed", "0", "unknown", "unknown"] in rows)
    expect_that(said, "what callers did, as far as the logs go:" in said)
    expect("where they occur", {each["caller"].split()[0]: each["occurs"] for each in json.loads(ration("diff", whole, killed, "--json"))["devices"][0]["callers"]},
           {"keep": "new", "load": "both", "old": "unknown"})
    said = ration("diff", whole, lost)
    expect_that(said, "--fail-above" not in said and ["peak", "used", "5MiB", "at", "least", "4MiB", "unknown"] in [line.split() for line in said.splitlines()])
    expect_that("nothing of it is known", ["peak", "used", "5MiB", "unknown", "unknown"] in [line.split() for line in ration("diff", whole, alone).splitlines()])


def programs(folder):
    """Two modes of one program, and the reports of both."""
    logs = []
    for mode in ("pool", "direct"):
        inner = pathlib.Path(folder) / mode
        inner.mkdir()
        run("endings", "return", folder=inner, RATION_MODE=mode, **SETTINGS)
        logs.append(inner / "run.jsonl")
    document = json.loads(ration("diff", *logs, "--json"))
    reports = [report_of(log) for log in logs]
    sides = [report["logs"][0]["devices"][0] for report in reports]
    device = document["devices"][0]
    for key in ("peak_bytes", "reserved_peak_bytes", "allocs", "frees"):
        expect(key, of(device, key), figures(sides[0][key], sides[1][key]))
    expect("leaks", of(device, "live_bytes"), figures(*(sum(leak["bytes"] for leak in report["leaks"]) for report in reports)))
    expect("callers", {each["caller"]: of(each, "at_peak_bytes") for each in device["callers"]},
           {each["caller"]: figures(each["at_peak_bytes"], each["at_peak_bytes"]) for each in sides[0]["callers"]})


def without_stacks(folder):
    """Of two logs only one of which has stacks, callers cannot be compared: what they called can."""
    first, _ = made(folder, END)
    records = [json.loads(line) for line in pathlib.Path(first).read_text().splitlines()[1:]]
    plain = write(pathlib.Path(folder) / "plain.jsonl", *({key: value for key, value in record.items() if key not in ("stack", "seq", "ts")}
                                                          for record in records if record["t"] in ("alloc", "free")))
    for names in ((first, plain), (plain, first)):
        for grouping in ("caller", "library"):
            done = subprocess.run([RATION, "diff", *names, "--by", grouping], env=clean_environment(), capture_output=True, text=True, check=True)
            expect("stderr", done.stderr, f"ration: diff: {plain} was recorded without --stacks, the other with them: driver functions are shown in place of callers\n")
            expect_that(done.stdout, "no caller changed" in done.stdout)
    expect_that("by size", "without --stacks" not in ration("diff", first, plain, "--by", "size"))


def refused(arguments, status, words):
    def case(folder):
        first, _ = made(folder, END)
        done = subprocess.run([RATION, "diff", *(str(first) if word == "LOG" else word for word in arguments)], cwd=folder,
                              env=clean_environment(), capture_output=True, text=True, check=False)
        expect("status, stdout", (done.returncode, done.stdout), (status, ""))
        expect_that(f"{words!r} is not in {done.stderr!r}", words in done.stderr and len(done.stderr.splitlines()) == 1)
    return case


main({"json": documented,
      "text": printed,
      "by library": by_library,
      "fail above": grown,
      "a peak that is not known": unknown_peak,
      "one log without stacks": without_stacks,
      "programs": programs,
      "one log": refused(["LOG"], 2, "it compares two logs"),
      "standard input twice": refused(["-", "-"], 2, "standard input is one log"),
      "a missing log": refused(["LOG", "missing"], 2, "missing: No such file or directory"),
      "a wrong grouping": refused(["LOG", "LOG", "--by", "line"], 2, "--by line: it must be one of caller, library, thread"),
      "a wrong growth": refused(["LOG", "LOG", "--fail-above", "-1%"], 2, "--fail-above"),
      "a wrong share": refused(["LOG", "LOG", "--fail-above", "x%"], 2, "'x%' is not a percentage")})
