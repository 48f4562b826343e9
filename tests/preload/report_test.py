#!/usr/bin/env python3
"""`ration report` and `ration check` over logs of whole programs: their figures are those that the records add up to."""
import collections
import json
import pathlib
import subprocess
import xml.etree.ElementTree as xml

from harness import BUILD, HANG, MIB, clean_environment, expect, expect_that, main, of_type, run

RATION = BUILD / "bin/ration"
LIMIT = 256 * MIB


def ration(*arguments, status=0):
    done = subprocess.run([RATION, *map(str, arguments)], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    expect("stderr", done.stderr, "")
    return done.stdout


def added_up(records):
    """Peak and its record, and what is left, of the charged blocks on device 0."""
    live, held, peak, at = {}, 0, 0, 0
    for record in records:
        if record["t"] == "alloc" and record.get("charged", True):
            live[record["addr"], record["kind"]] = record
            held += record["size"]
            if held > peak:
                peak, at = held, record["seq"]
        elif record["t"] == "free" and (block := live.pop((record["addr"], record["kind"]), None)):
            held -= block["size"]
    return peak, at, live.values()


def reported(program, *arguments, **settings):
    def case(folder):
        done = run(program, *arguments, folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB", **settings)
        for name, records in done.logs.items():
            report = json.loads(ration("report", pathlib.Path(folder) / name, "--json"))
            peak, at, left = added_up(records)
            end = of_type(records, "end")[0]
            expect("peak", (report["peak_bytes"], report["peak_seq"]), (peak, at))
            expect("peak in the log's end", report["peak_bytes"], end["peak"][0])
            expect("counts", (report["allocs"], report["frees"], report["failures"]),
                   (end["allocs"], end["frees"], end["ooms"] + end["failed_allocs"]))
            by_api = collections.Counter()
            for block in left:
                by_api[block["api"]] += block["size"]
            expect("leaks", {leak["group"]: leak["bytes"] for leak in report["leaks"]}, dict(by_api))
            device = report["logs"][0]["devices"][0]
            expect("reserved", device["reserved_peak_bytes"], end["reserved_peak"][0])
            expect("refusals", sum(each["count"] for each in device["refusals"]), end["ooms"])
            text = ration("report", pathlib.Path(folder) / name)
            expect_that(f"the peak is not in {text}", f"({peak} bytes)" in text)
    return case


def checked(folder):
    log, junit = pathlib.Path(folder) / "run.jsonl", pathlib.Path(folder) / "junit.xml"
    records = run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB").logs["run.jsonl"]
    peak, at, left = added_up(records)
    mib = -(-peak // MIB)
    expect("a peak that held", ration("check", log, "--max-peak", f"{mib}MiB", "--max-fragmentation", "5%"), "")
    said = ration("check", log, "--max-peak", "1MiB", "--no-leaks", "--no-failures", "--junit", junit, status=1).splitlines()
    expect("conditions", [line.split(":")[0] for line in said], ["--max-peak", "--no-leaks", "--no-failures"])
    expect_that(f"the peak's record in {said[0]}", f"({peak} bytes) at record {at}" in said[0])
    expect_that(f"the leaks in {said[1]}", f"{len(left)} blocks" in said[1])
    expect_that(f"the refusal in {said[2]}", "1 refusal of cuMemAlloc_v2, reason limit" in said[2])
    suite = xml.parse(junit).getroot().find("testsuite")
    expect("JUnit", (suite.get("tests"), suite.get("failures"), [case.get("name") for case in suite.iter("testcase")]),
           ("3", "3", ["--max-peak", "--no-leaks", "--no-failures"]))


def killed(folder):
    """The log of a killed process is whole, and says so."""
    run("endings", "kill", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    log = pathlib.Path(folder) / "run.jsonl"
    expect_that("no end", "no end record: killed, or still running" in ration("report", log))
    expect_that("no proof", "the log has no end record" in ration("check", log, "--no-leaks", status=1))


def refused(arguments, status, words):
    def case(folder):
        (pathlib.Path(folder) / "text").write_text("no log\n")
        done = subprocess.run([RATION, *arguments], cwd=folder, env=clean_environment(), capture_output=True, text=True, check=False)
        expect("status, stdout", (done.returncode, done.stdout), (status, ""))
        expect_that(f"{words!r} is not in {done.stderr!r}", words in done.stderr and len(done.stderr.splitlines()) == 1)
    return case


main({"endings": reported("endings", "return"),
      "endings, slabs": reported("endings", "return", RATION_BACKING="slab"),
      "endings, direct": reported("endings", "return", RATION_MODE="direct"),
      "endings, async": reported("endings", "return", RATION_MODE="async"),
      "graphs": reported("graph_ways", "captured", "cuGraphInstantiateWithFlags", "cuGraphLaunch"),
      "check": checked,
      "a killed process": killed,
      "report of no log": refused(["report", "text"], 2, "not a log of Ration"),
      "report of nothing": refused(["report", "missing"], 2, "No such file or directory"),
      "report without a log": refused(["report"], 2, "LOG is required"),
      "report by a wrong word": refused(["report", "text", "--by", "colour"], 2, "'colour' is none of function, library, kind"),
      "check of no log": refused(["check", "text", "--no-leaks"], 2, "not a log of Ration"),
      "check without a condition": refused(["check", "text"], 2, "no condition"),
      "check with a wrong size": refused(["check", "text", "--max-peak", "6Gb"], 2, "--max-peak"),
      "check with a wrong share": refused(["check", "text", "--max-fragmentation", "101"], 2, "no percentage")})
