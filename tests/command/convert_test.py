#!/usr/bin/env python3
"""`ration convert`: what others read from each format adds up to what `ration report` says of the log."""
import collections
import csv
import json
import os
import pathlib
import pickle
import pickletools
import re
import subprocess

import log_of_every_kind
from harness import BUILD, HANG, MIB, clean_environment, expect, expect_that, main, read_log, run

RATION = BUILD / "bin/ration"
SETTINGS = {"RATION_LIMIT": 256 * MIB, "SIMCUDA_DEVICES": "1GiB"}

# Operations of pickle that the reader in PyTorch's MemoryViz.js knows.
READABLE = {"PROTO", "STOP", "MARK", "APPEND", "APPENDS", "SETITEM", "SETITEMS", "EMPTY_DICT", "EMPTY_LIST", "BININT", "BININT1",
            "BININT2", "LONG1", "BINUNICODE", "BINPUT", "LONG_BINPUT", "BINGET", "LONG_BINGET", "NEWTRUE", "NEWFALSE", "NONE"}


def leaks_in_records(report):
    """Without what only the end of the log tells."""
    return [leak for leak in report["leaks"] if leak["memory"] == "device" and leak["caller"] != "unknown: the log lacks records"]


def ration(*arguments, status=0, text=True):
    done = subprocess.run([RATION, *map(str, arguments)], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=text, timeout=HANG, check=False)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    return done.stdout


def convert(log, form, *options):
    return ration("convert", log, "--to", form, *options)


class Followed:
    """Blocks that begin and end, by device: figures as `ration report` has them."""

    def __init__(self):
        self.live, self.held, self.peak, self.begun, self.ended = {}, collections.Counter(), collections.Counter(), 0, 0

    def begin(self, key, dev, size):
        expect_that(f"{key} is not live", key not in self.live)
        self.live[key] = dev, size
        self.begun += 1
        self.held[dev] += size
        self.peak[dev] = max(self.peak[dev], self.held[dev])

    def end(self, key, size=None):
        dev, begun = self.live.pop(key)
        expect(f"size of {key}", begun if size is None else size, begun)
        self.ended += 1
        self.held[dev] -= begun


def report_of(log):
    return json.loads(ration("report", log, "--json"))


def counted_in_records(report, *seen):
    """What the report counts; if records were lost, its end counts more, and `seen` may be less."""
    counts = (report["allocs"], report["frees"])[:len(seen)]
    return tuple(map(min, counts, seen)) if report["logs"][0]["dropped"] else counts


def agrees(followed, report, devices=True):
    expect("blocks", (followed.begun, followed.ended), counted_in_records(report, followed.begun, followed.ended))
    leaked = collections.Counter()
    for leak in leaks_in_records(report):
        leaked[leak["dev"]] += leak["bytes"]
    reported = {each["dev"]: each["least_peak_bytes"] for each in report["logs"][0]["devices"]}
    if report["logs"][0]["dropped"] and report["logs"][0]["ended"]:  # the report names only what was certainly not freed
        expect_that(f"{leaked} is at most {followed.held}", leaked.total() <= followed.held.total())
    elif devices:
        expect("peaks", {dev: followed.peak[dev] for dev in reported}, reported)
        expect("left", {dev: held for dev, held in followed.held.items() if held}, dict(leaked))
    else:
        expect("left", sum(followed.held.values()), sum(leaked.values()))


def refusals(report, but=()):
    return sum(each["refusals"] for dev in report["logs"][0]["devices"] for each in dev["refused_requests"] if each["api"] not in but)


def chrome(log, report):
    """Blocks are pairs of b and e with one id; counters have the totals; nothing goes back in time."""
    events = json.loads(convert(log, "chrome"))["traceEvents"]
    kinds = collections.Counter(event["ph"] for event in events)
    expect_that(f"kinds of events: {kinds}", set(kinds) <= set("MCbei"))
    expect("names", {e["name"] for e in events if e["ph"] == "M"}, {"process_name", "thread_name"})
    followed, begun, counters, reserved = Followed(), {}, {}, collections.Counter()
    times = [event["ts"] for event in events if event["ph"] != "M"]
    expect("times", times, sorted(times))
    expect("process", {event["pid"] for event in events}, {report["logs"][0]["pid"]})
    named = {event["tid"] for event in events if event["name"] == "thread_name"}
    for event in events:
        if event["ph"] == "b":
            begun[event["id"]] = event
            if event["args"]["charged"]:
                followed.begin(event["id"], event["args"]["dev"], event["args"]["size"])
        elif event["ph"] == "e":
            expect("name", event["name"], begun[event["id"]]["name"])
            if begun[event["id"]]["args"]["charged"]:
                followed.end(event["id"])
        elif event["ph"] == "C":
            dev = int(event["name"].split()[1])
            expect_that("counted when it changes", counters.get(dev) != event["args"])
            counters[dev] = event["args"]
            expect("used", event["args"]["used"], followed.held[dev])
            reserved[dev] = max(reserved[dev], event["args"]["reserved"])
        expect_that("its thread has a name", event["ph"] in "MC" or event["tid"] in named)
    agrees(followed, report)
    for device in report["logs"][0]["devices"]:
        sure = device["reserved_peak_bytes"]  # at least, if records are missing
        expect("reserved", min(reserved[device["dev"]], sure) if report["logs"][0]["dropped"] else reserved[device["dev"]], sure)
        expect("limit", {counters[device["dev"]]["limit"]} if device["dev"] in counters else {device["limit"]}, {device["limit"]})
    marks = [event for event in events if event["ph"] == "i" and event["name"].startswith("refused: ")]
    expect("refusals", len(marks), refusals(report))
    return events


def torch(log, report):
    """The state that PyTorch's viewer makes of the events is the one in `segments`."""
    path = pathlib.Path(log).with_suffix(".pickle")
    expect("stdout", convert(log, "torch", "-o", path), "")
    content = path.read_bytes()
    expect("protocol", content[:2], b"\x80\x02")
    used = {operation.name for operation, _, _ in pickletools.genops(content)}
    expect("operations that the page's reader lacks", used - READABLE, set())
    snapshot = pickle.loads(content)
    followed, segments = Followed(), {}
    expect("devices", len(snapshot["device_traces"]), len(report["logs"][0]["devices"]))
    ooms = 0
    for dev, trace in enumerate(snapshot["device_traces"]):
        last = None
        for event in trace:
            expect_that("frames", all(set(frame) == {"filename", "line", "name"} for frame in event["frames"]))
            action, key = event["action"], event.get("addr")
            if action == "oom":
                ooms += 1
                expect_that("no address", key is None and event["device_free"] >= 0)
            elif action == "segment_alloc":
                expect_that("a new segment", key not in segments)
                segments[key] = dev, event["size"]
            elif action == "segment_free":
                expect("segment", segments.pop(key), (dev, event["size"]))
            elif action == "alloc":
                expect_that("in a segment", any(at <= key and key + event["size"] <= at + size for at, (_, size) in segments.items()))
                followed.begin(key, dev, event["size"])
            elif action == "free_completed":
                expect("requested before", (last["action"], last["addr"]), ("free_requested", key))
                followed.end(key, event["size"])
            else:
                expect("action", action, "free_requested")
            last = event
    agrees(followed, report)
    expect("refusals", ooms, refusals(report))
    at_end = {}
    for segment in snapshot["segments"]:
        at_end[segment["address"]] = segment["device"], segment["total_size"]
        expect("blocks fill their segment", sum(each["size"] for each in segment["blocks"]), segment["total_size"])
        at, active = segment["address"], 0
        for each in segment["blocks"]:
            expect("blocks follow one another", each["address"], at)
            at += each["size"]
            if each["state"] == "active_allocated":
                expect("a live block", followed.live.pop(each["address"]), (segment["device"], each["size"]))
                expect_that("requested", 0 < each["requested_size"] <= each["size"])
                active += each["size"]
            else:
                expect("state", (each["state"], each["requested_size"]), ("inactive", 0))
        expect("active", (segment["active_size"], segment["allocated_size"]), (active, active))
    expect("live blocks in no segment", followed.live, {})
    expect("segments", at_end, segments)
    return snapshot


def rmm(log, report):
    """As RMM's replay benchmark parses it: decimal thread, size and stream, a pointer in base 16."""
    rows = list(csv.DictReader(convert(log, "rmm-csv").splitlines()))
    expect_that("columns", not rows or list(rows[0]) == ["Thread", "Time", "Action", "Pointer", "Size", "Stream"])
    followed, failures = Followed(), 0
    for row in rows:
        expect_that(f"time {row['Time']}", re.fullmatch(r"[0-2]\d:[0-5]\d:[0-5]\d\.\d{6}", row["Time"]))
        int(row["Thread"]), int(row["Stream"])
        if row["Action"] == "allocate":
            followed.begin(int(row["Pointer"], 16), 0, int(row["Size"]))
        elif row["Action"] == "free":
            followed.end(int(row["Pointer"], 16), int(row["Size"]))
        else:
            expect("failure", (row["Action"], int(row["Pointer"], 16)), ("allocate failure", 0))
            failures += 1
    agrees(followed, report, devices=False)
    if len(report["logs"][0]["devices"]) == 1:
        expect("peak", followed.peak[0], report["least_peak_bytes"])
    expect("failures", failures, refusals(report, but=["cuIpcGetMemHandle"]))
    return rows


def table(log, report, records):
    """Each row has what its record has, as text."""
    rows = list(csv.DictReader(convert(log, "csv").splitlines(keepends=True)))
    kept = [record for record in records if record["t"] not in ("meta", "mod", "frame", "stack", "end")]
    expect("rows", len(rows), len(kept))
    for row, record in zip(rows, kept):
        for key, value in record.items():
            expect(f"{key} of {row}", row[key], value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
                   if not isinstance(value, list) else row[key])
            if isinstance(value, list):
                expect(key, json.loads(row[key]), value)
        expect("other columns", {key for key, text in row.items() if text and key != "caller"}, set(record))
    charged = [row for row in rows if row["t"] == "alloc" and row["charged"] != "false"]
    expect("allocations", (len(charged),), counted_in_records(report, len(charged)))
    return rows


def folded(log, report, of, wanted):
    """A line is frames between semicolons, a blank, and a number."""
    lines = convert(log, "collapsed", "--of", of).splitlines()
    stacks = collections.Counter()
    for line in lines:
        frames, bytes_ = re.fullmatch(r"((?:[^;\n]+;)*[^;\n]+) (\d+)", line).groups()
        expect_that("no empty frame", all(frames.split(";")))
        expect_that(f"{frames} comes once", frames not in stacks)
        stacks[frames] += int(bytes_)
    expect(f"bytes, {of}", sum(stacks.values()), wanted)
    return stacks


def all_formats(log, records):
    report = report_of(log)
    chrome(log, report)
    torch(log, report)
    rmm(log, report)
    table(log, report, records)
    folded(log, report, "peak", sum(each["least_peak_bytes"] for each in report["logs"][0]["devices"]))
    if report["logs"][0]["dropped"] == 0:
        folded(log, report, "leaked", sum(each["bytes"] for each in leaks_in_records(report)))
        folded(log, report, "total", sum(record["size"] for record in records if record["t"] == "alloc" and record.get("charged", True)))


def converted(program, *arguments, **settings):
    def case(folder):
        for name, records in run(program, *arguments, folder=folder, **SETTINGS | settings).logs.items():
            all_formats(pathlib.Path(folder) / name, records)
    return case


def made(folder):
    log = log_of_every_kind.write(pathlib.Path(folder) / "made.jsonl", *log_of_every_kind.RECORDS)
    records = [json.loads(line) for line in log.read_text().splitlines()]
    all_formats(log, records)
    report = report_of(log)
    expect("report", (report["least_peak_bytes"], report["allocs"], report["frees"]), (512 + 1024 + 4096 + 8192, 6, 3))

    begun = [event for event in chrome(log, report) if event["ph"] == "b"]
    expect("ids", [event["id"] for event in begun if event["id"].startswith("0x20#")], ["0x20#14", "0x20#15", "0x20#16"])
    expect("a caller", begun[1]["name"], "large (model.py:5), from load (train.py:20)")
    expect("times", [event["ts"] for event in begun[:2]], [12.0, 13.0])

    snapshot = torch(log, report)
    frames = next(event["frames"] for event in snapshot["device_traces"][1] if event["action"] == "alloc")
    expect("innermost first", [(frame["name"], frame["filename"], frame["line"]) for frame in frames],
           [("large", "/opt/model.py", 5), ("load", "/opt/train.py", 20), ("main", "/opt/train.py", 3)])
    slab = next(segment for segment in snapshot["segments"] if segment["address"] == 0x100000)
    expect("blocks of the slab", [(block["size"], block["state"]) for block in slab["blocks"]],
           [(2048, "inactive"), (2048, "active_allocated"), (61440, "inactive")])

    expect("the first day ends", [row["Time"][:8] for row in rmm(log, report)][0], "00:00:00")
    expect("a text with all that is quoted", [row["group"] for row in table(log, report, records) if row["t"] == "oom"], ["a,\"b\""])
    expect("by stack", dict(folded(log, report, "leaked", 4096 + 2048 + 2048)),
           {"device 0;cuMemAlloc_v2": 4096, "device 0;main;small:one\\x0aof, \"two\"": 2048, "device 1;main;load;large": 2048})


def killed(folder):
    run("endings", "kill", folder=folder, **SETTINGS)
    log = pathlib.Path(folder) / "run.jsonl"
    all_formats(log, read_log(log))


def stacks(folder):
    run("callers", "depths", "40", folder=folder, RATION_STACKS="native", **SETTINGS | {"RATION_LIMIT": "1GiB"})
    log = pathlib.Path(folder) / "run.jsonl"
    all_formats(log, read_log(log))
    lines = folded(log, report_of(log), "leaked", sum(each["bytes"] for each in leaks_in_records(report_of(log))))
    depths = {tuple(frame for frame in line.split(";") if frame in ("deeper", "by_left", "by_right")): bytes_
              for line, bytes_ in lines.items()}
    expect("stacks", depths, {("deeper",) * 41 + ("by_left",): MIB, ("by_left",): 3 * MIB, ("by_right",): 6 * MIB})


def files(folder):
    """A file is what it was until its conversion is complete."""
    log = log_of_every_kind.write(pathlib.Path(folder) / "made.jsonl", *log_of_every_kind.RECORDS)
    there = pathlib.Path(folder) / "there.csv"
    there.write_text("before")
    there.chmod(0o600)
    (pathlib.Path(folder) / "link.csv").symlink_to(there)
    lines = log.read_text().splitlines(keepends=True)
    (pathlib.Path(folder) / "torn.jsonl").write_text("".join(lines[:-2] + [lines[-2][:-5] + "\n", lines[-1]]))
    ration("convert", pathlib.Path(folder) / "torn.jsonl", "--to", "csv", "-o", there, status=2)
    expect("after an error", there.read_text(), "before")
    ration("convert", log, "--to", "csv", "-o", pathlib.Path(folder) / "link.csv")
    expect("through a link", there.read_text(), convert(log, "csv"))
    expect("its mode", there.stat().st_mode & 0o777, 0o600)
    expect("on stdout", convert(log, "csv", "-o", "-"), convert(log, "csv"))
    convert(log, "csv", "-o", "/dev/null")
    expect_that("a device stays one", pathlib.Path("/dev/null").is_char_device())
    expect("files", sorted(os.listdir(folder)), ["link.csv", "made.jsonl", "there.csv", "torn.jsonl"])
    ration("convert", log, "--to", "csv", "-o", pathlib.Path(folder) / "none/there.csv", status=125)
    with open("/dev/full", "w") as full:
        done = subprocess.run([RATION, "convert", log, "--to", "csv"], env=clean_environment(), stdout=full, stderr=subprocess.PIPE,
                              text=True, check=False)
    expect("a full disk", (done.returncode, done.stderr.splitlines()[-1]), (125, "ration: cannot write to standard output: No space left on device"))


def refused(arguments, words):
    def case(folder):
        log = log_of_every_kind.write(pathlib.Path(folder) / "made.jsonl", *log_of_every_kind.RECORDS)
        done = subprocess.run([RATION, "convert", *(str(log) if word == "LOG" else word for word in arguments)], cwd=folder,
                              env=clean_environment(), capture_output=True, text=True, check=False)
        expect("status, stdout", (done.returncode, done.stdout), (2, ""))
        expect_that(f"{words!r} is not in {done.stderr!r}", words in done.stderr and len(done.stderr.splitlines()) == 1)
    return case


if __name__ == "__main__":
    main({"endings": converted("endings", "return"),
          "endings, slabs": converted("endings", "return", RATION_BACKING="slab"),
          "endings, direct": converted("endings", "return", RATION_MODE="direct"),
          "endings, async": converted("endings", "return", RATION_MODE="async"),
          "graphs": converted("graph_ways", "captured", "cuGraphInstantiateWithFlags", "cuGraphLaunch"),
          "records that were lost": converted("endings", "setrlimit"),
          "a killed process": killed,
          "stacks": stacks,
          "two devices, equal handles, lost records": made,
          "files": files,
          "no format": refused(["LOG"], "--to is required"),
          "a wrong format": refused(["LOG", "--to", "svg"], "--to svg: it must be one of chrome, pprof, collapsed, torch, rmm-csv, csv"),
          "a wrong amount": refused(["LOG", "--to", "collapsed", "--of", "most"], "--of most: it must be one of peak, total, leaked"),
          "an option of another format": refused(["LOG", "--to", "csv", "--at", "peak"], "--at is not for --to csv"),
          "no log": refused(["missing", "--to", "csv"], "No such file or directory")})
