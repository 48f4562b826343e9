#!/usr/bin/env python3
"""`ration convert --to pprof`, read by the library of protocol buffers: pprof_test.py SOURCE_DIR

Exit status 77 (skipped) only if no package index answers.
"""
import collections
import json
import pathlib
import subprocess
import sys

import log_of_every_kind
from convert_test import SETTINGS, convert, report_of
from harness import BUILD, MIB, expect, expect_that, main, run

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "preload/python"))
from client import interpreter  # noqa: E402

PYTHON = interpreter(pathlib.Path(sys.argv[1]), BUILD)
TYPES = [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"), ("inuse_space", "bytes")]


class Profile:
    def __init__(self, log, *options):
        path = log.with_suffix(".pb.gz")
        expect("stdout", convert(log, "pprof", "-o", path, *options), "")
        done = subprocess.run([PYTHON, HERE / "pprof_fields.py", path], capture_output=True, text=True, check=False)
        expect(f"reader, {done.stderr}", done.returncode, 0)
        self.fields = json.loads(done.stdout)
        expect("types", [(each["type"], each["unit"]) for each in self.fields["sample_type"]], TYPES)
        self.by_id = {kind: {each["id"]: each for each in self.fields.get(kind, [])} for kind in ("mapping", "location", "function")}
        for kind, known in self.by_id.items():
            expect(f"{kind} ids", sorted(known), list(range(1, len(known) + 1)))

    def totals(self):
        return [sum(sample["value"][i] for sample in self.fields.get("sample", [])) for i in range(4)]

    def stacks(self):
        """Of each sample: labels, places from the innermost, values."""
        for sample in self.fields.get("sample", []):
            places = []
            for number in sample["location_id"]:
                location = self.by_id["location"][number]
                expect_that("its mapping", location["mapping_id"] in self.by_id["mapping"])
                line, = location["line"]
                function = self.by_id["function"][line["function_id"]]
                places.append((function["name"], function.get("filename", ""), line.get("line", 0)))
            yield {label["key"]: label["str"] for label in sample["label"]}, places, sample["value"]


def agrees(log):
    report = report_of(log)
    end, peak = Profile(log), Profile(log, "--at", "peak")
    left = collections.Counter()
    for leak in (leak for leak in report["leaks"] if leak["memory"] == "device"):
        left.update(bytes=leak["bytes"], count=leak["count"])
    expect("objects, left", end.totals()[::2], [report["allocs"], left["count"]])
    expect("bytes left", end.totals()[3], left["bytes"])
    expect("bytes at the peak", peak.totals()[3], sum(each["least_peak_bytes"] for each in report["logs"][0]["devices"]))
    expect("at the peak", peak.totals()[2], sum(caller["at_peak_blocks"] for each in report["logs"][0]["devices"] for caller in each["callers"]))
    return end


def converted(program, *arguments, **settings):
    def case(folder):
        for name, records in run(program, *arguments, folder=folder, **SETTINGS | settings).logs.items():
            log = pathlib.Path(folder) / name
            expect("space", agrees(log).totals()[1], sum(each["size"] for each in records if each["t"] == "alloc" and each.get("charged", True)))
    return case


def made(folder):
    log = log_of_every_kind.write(pathlib.Path(folder) / "made.jsonl", *log_of_every_kind.RECORDS)
    profile = agrees(log)
    expect("samples", sorted((labels["dev"], labels["kind"], [place[0] for place in places], values)
                             for labels, places, values in profile.stacks()),
           [("0", "array", ["cuMemAlloc_v2"], [1, 8192, 0, 0]),
            ("0", "device", ["large", "load", "main"], [1, 1024, 0, 0]),
            ("0", "device", ["small;one\\x0aof, \"two\"", "main"], [2, 2560, 1, 2048]),
            ("0", "vmm", ["cuMemAlloc_v2"], [1, 4096, 1, 4096]),
            ("1", "device", ["large", "load", "main"], [1, 2048, 1, 2048])])
    expect("program", profile.fields["mapping"][0]["filename"], "/opt/train")
    expect("time", (profile.fields["time_nanos"], profile.fields["duration_nanos"]),
           (log_of_every_kind.META["start_unix_ns"], 1000 * len(log_of_every_kind.RECORDS)))


def stacks(folder):
    run("callers", "depths", "40", folder=folder, RATION_STACKS="native", **SETTINGS | {"RATION_LIMIT": "1GiB"})
    left = collections.Counter()
    for labels, places, values in agrees(pathlib.Path(folder) / "run.jsonl").stacks():
        expect("labels", labels, {"dev": "0", "api": "cuMemAlloc_v2", "kind": "device"})
        left[places[0][0], [place[0] for place in places].count("deeper")] += values[3]
    expect("left", left, {("by_left", 41): MIB, ("by_left", 0): 3 * MIB, ("by_right", 0): 6 * MIB})


main({"endings": converted("endings", "return"),
      "endings, slabs": converted("endings", "return", RATION_BACKING="slab"),
      "graphs": converted("graph_ways", "captured", "cuGraphInstantiateWithFlags", "cuGraphLaunch"),
      "stacks": stacks,
      "two devices, equal handles, lost records": made})
