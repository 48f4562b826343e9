#!/usr/bin/env python3
"""`ration report` and `ration check` over logs of whole programs: their figures are those that the records add up to."""
import collections
import json
import pathlib
import re
import subprocess
import xml.etree.ElementTree as xml

from log_of_every_kind import write
from harness import BUILD, GIB, HANG, MIB, clean_environment, expect, expect_that, main, of_type, run

RATION = BUILD / "bin/ration"
LIMIT = 256 * MIB


def ration(*arguments, status=0, said=(), **more):
    done = subprocess.run([RATION, *map(str, arguments)], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False, **more)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    expect("stderr", done.stderr.splitlines(), [f"ration: {line}" for line in said])
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
            expect_that(f"the peak is not in {text}", f"{peak} bytes" in text)
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
    done = subprocess.run([BUILD / "bin/ration", "check", log, "--max-peak", "1MiB", "--no-leaks", "--no-failures", "--junit", "-"],
                          capture_output=True, text=True, check=False)
    expect("on stdout", (done.stdout, done.stderr.splitlines(), done.returncode), (junit.read_text(), said, 1))
    suite = xml.parse(junit).getroot().find("testsuite")
    expect("JUnit", (suite.get("tests"), suite.get("failures"), [case.get("name") for case in suite.iter("testcase")]),
           ("3", "3", ["--max-peak", "--no-leaks", "--no-failures"]))


def killed(folder):
    """Each view of the log of a killed process says that it has no end."""
    run("endings", "kill", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    log = pathlib.Path(folder) / "run.jsonl"
    caveat = "no end record: killed, or still running"
    freed = log.with_name("freed.jsonl")
    freed.write_text("".join(line + "\n" for line in log.read_text().splitlines() if json.loads(line)["t"] == "meta"))
    for view in (["report"], ["report", "--leaks"], ["diff", log], ["report", "--by", "library"]):
        expect_that(f"{view} says that there is no end", caveat in ration(*view, log))
    for arguments in (["convert", log, "--to", "csv"], ["replay", freed], ["check", log, "--max-peak", "100%"]):
        ration(*arguments, said=[f"{arguments[0]}: {arguments[1]}: {caveat}"])
    shown, = json.loads(ration("report", log, "--json"))["logs"]
    expect("in JSON", (shown["ended"], shown["cut_off"]), (False, False))
    expect("of a replay", json.loads(ration("replay", freed, "--json", said=[f"replay: {freed}: {caveat}"]))["ended"], False)
    expect("nothing is left, as far as is known", ration("report", "--leaks", freed).splitlines(),
           [f"{freed}: {caveat}", f"{freed}: every block was freed, as far as the log goes"])
    for condition in ("--no-leaks", "--no-failures"):
        expect_that("no proof", "the log has no end record" in ration("check", log, condition, status=1))


def named_twice(folder):
    """A log counts once, however often and by whatever name it is given."""
    run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    (pathlib.Path(folder) / "other").mkdir()
    run("endings", "return", folder=pathlib.Path(folder) / "other", RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    (pathlib.Path(folder) / "link").symlink_to("run.jsonl")
    (pathlib.Path(folder) / "copy").write_bytes((pathlib.Path(folder) / "run.jsonl").read_bytes())
    once = json.loads(ration("report", "run.jsonl", "--json", cwd=folder))
    expect("a log", len(once["logs"]), 1)
    for name in ("run.jsonl", "./run.jsonl", "run.jsonl.zst", "link", "copy"):
        said = [f"report: {name} is the log run.jsonl again: it is counted once"]
        expect(name, json.loads(ration("report", "run.jsonl", name, "--json", cwd=folder, said=said)), once)
        expect(f"{name}, in words", ration("report", "run.jsonl", name, cwd=folder, said=said), ration("report", "run.jsonl", cwd=folder))
        expect_that("a page", not ration("report", "run.jsonl", name, "-o", "page.html", cwd=folder,
                                         said=[*said, "wrote page.html: open it in a browser"]))
    expect("two runs", len(json.loads(ration("report", "run.jsonl", "other/run.jsonl", "--json", cwd=folder))["logs"]), 2)
    with open(pathlib.Path(folder) / "copy", "rb") as pipe, subprocess.Popen(["cat"], stdin=pipe, stdout=subprocess.PIPE) as cat:
        done = subprocess.run([RATION, "report", "--json", "other/run.jsonl", "/dev/stdin"], cwd=folder, stdin=cat.stdout,
                              capture_output=True, text=True, check=False)
    expect("a pipe is read", (len(json.loads(done.stdout)["logs"]), done.stderr), (2, ""))


def part_named_too(folder):
    """`run.jsonl*` has the part before the last one, which belongs to the log."""
    run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    path = pathlib.Path(folder) / "run.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    whole = json.loads(ration("report", path, "--json"))
    middle = len(lines) // 2
    (pathlib.Path(folder) / "run.jsonl.previous").write_text("".join(lines[:middle]))
    path.write_text(json.dumps(json.loads(lines[0]) | {"part": 2, "first_seq": middle}) + "\n" + "".join(lines[middle:]))
    said = ["report: run.jsonl.previous is a part of the log run.jsonl: it is counted once"]
    for names in (("run.jsonl", "run.jsonl.previous"), ("run.jsonl.previous", "run.jsonl")):
        report = json.loads(ration("report", *names, "--json", cwd=folder, said=said))
        expect(f"{names}: counts", [report[key] for key in ("allocs", "frees", "peak_bytes")],
               [whole[key] for key in ("allocs", "frees", "peak_bytes")])
        expect(f"{names}: logs", [each["log"] for each in report["logs"]], ["run.jsonl"])


def host_memory(folder):
    """Pinned memory that was not freed is told as such, and is in no figure of the device."""
    records = run("steps", "init", "context=0", "alloc=2m", "pinned=3m", "pinned=5m", "unpin=0", folder=folder,
                  SIMCUDA_DEVICES="1GiB").logs["run.jsonl"]
    log = pathlib.Path(folder) / "run.jsonl"
    report = json.loads(ration("report", log, "--json"))
    expect("leaks", [(leak["memory"], leak["group"], leak["bytes"], leak["count"]) for leak in report["leaks"]],
           [("host", "cuMemHostAlloc", 5 * MIB, 1), ("device", "cuMemAlloc_v2", 2 * MIB, 1)])
    expect("sums of the device", (report["peak_bytes"], report["allocs"], report["frees"]),
           (added_up(records)[0], 1, of_type(records, "end")[0]["frees"]))
    text = ration("report", log, "--leaks")
    expect_that(f"device memory in {text}", f"1 block not freed, 2MiB ({2 * MIB} bytes)" in text)
    expect_that(f"host memory in {text}", f"1 block of pinned host memory not freed, 5MiB ({5 * MIB} bytes)" in text)
    expect_that("a table", "HOST MEMORY NOT FREED" in ration("report", log))


def advised(mode, limit, *sizes, **settings):
    """Under the limit that a report advises after a refusal, the same program is not refused."""
    def case(folder):
        def ended(limit):
            done = run("steps", "init", "context=0", *sizes, folder=folder, SIMCUDA_DEVICES="16GiB", RATION_MODE=mode, RATION_LIMIT=limit,
                       **settings)
            return done.out.splitlines()[-1].endswith(": 0")
        expect_that("it is refused at first", not ended(limit))
        refusal = json.loads(ration("report", pathlib.Path(folder) / "run.jsonl", "--json"))["logs"][0]["devices"][0]["refusals"][-1]
        advice = re.search(r"a limit of [^(]*\(([0-9]+) bytes\) (?:would have served|may serve) it", refusal["remedy"])
        expect_that(f"a limit in {refusal['remedy']}", advice)
        expect_that(f"{advice[1]} is more", int(advice[1]) > refusal["limit"])
        expect_that(f"under {advice[1]} it is served", ended(advice[1]))
        print(refusal["remedy"])
    return case


def cut_off(folder):
    """A log that was cut off anywhere is read to there, which one line says; what never was one is none."""
    run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    whole = (pathlib.Path(folder) / "run.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for count in range(2, len(lines)):
        text = b"".join(lines[:count])
        (pathlib.Path(folder) / "cut.jsonl").write_bytes(text + lines[count][:len(lines[count]) // 2])
        said = f"cut.jsonl: the log was cut off in line {count + 1}: what stands before that was read"
        report = json.loads(ration("report", "cut.jsonl", "--json", cwd=folder, said=[f"report: {said}"]))
        peak, at, _ = added_up(map(json.loads, lines[1:count]))
        expect("peak", (report["peak_bytes"], report["peak_seq"]), (peak, at))
    expect_that("in words", "the log was cut off" in ration("report", "cut.jsonl", cwd=folder, said=[f"report: {said}"]))
    for condition in ("--no-leaks", "--max-peak=1GiB", "--max-fragmentation=100%"):
        expect_that("no proof", "the log was cut off" in ration("check", "cut.jsonl", condition, cwd=folder, status=1, said=[f"check: {said}"]))
    expect_that("of leaks", "cut.jsonl: the log was cut off" in ration("report", "--leaks", "cut.jsonl", cwd=folder, said=[f"report: {said}"]))
    expect_that("in a diff", "A: cut.jsonl, the log was cut off" in ration("diff", "cut.jsonl", "run.jsonl", cwd=folder, said=[f"diff: {said}"]))
    ration("diff", "cut.jsonl", "run.jsonl", "--fail-above", "1GiB", cwd=folder, status=1, said=[f"diff: {said}"])
    ration("convert", "cut.jsonl", "--to", "csv", cwd=folder, said=[f"convert: {said}"])
    ration("report", "cut.jsonl", "-o", "page.html", cwd=folder, said=[f"report: {said}", "wrote page.html: open it in a browser"])
    done = subprocess.run([RATION, "replay", "cut.jsonl", "--json"], cwd=folder, env=clean_environment(), capture_output=True, text=True,
                          check=False)
    expect_that(done.stderr, f"ration: replay: {said}" in done.stderr.splitlines())
    expect("exact", json.loads(done.stdout)["exact"], False)
    (pathlib.Path(folder) / "cut.jsonl").write_bytes(lines[0])
    expect("of what is there", ration("report", "cut.jsonl", cwd=folder).splitlines()[-1],
           "no device memory was requested, as far as the log goes")


def of_graphs(folder):
    """What only the driver's pools held is told, too."""
    log = write(pathlib.Path(folder) / "run.jsonl",
                {"t": "sample", "tid": 7, "dev": 0, "api": "cuGraphLaunch", "pool_reserved": 64 * MIB})
    expect_that("the reserved peak", f"peak reserved 64MiB ({64 * MIB} bytes)" in ration("report", log))


def refused(arguments, status, words):
    def case(folder):
        (pathlib.Path(folder) / "text").write_text("no log\n")
        (pathlib.Path(folder) / "ok").write_text("ok")
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
      "a log named twice": named_twice,
      "a part of a log": part_named_too,
      "host memory": host_memory,
      "a log that was cut off": cut_off,
      "memory of graphs alone": of_graphs,
      **{f"advice for a stream-ordered request, {mode}": advised(mode, 48 * MIB, "alloc=3m", "alloc=5m", "alloc_async=40m", **settings)
         for mode, settings in (("pool", {"RATION_BACKING": "vmm"}), ("direct", {}))},
      "advice of whole granules": advised("pool", 3 * GIB, "alloc=5m", "alloc=6g", RATION_BACKING="vmm"),
      "advice for what is preallocated": advised("pool", GIB, *["alloc=1m"] * 3, "alloc=700m", "alloc=5g", RATION_BACKING="vmm"),
      "advice in mode async": advised("async", GIB, *["alloc=1m"] * 3, "alloc=700m", "alloc=5g"),
      "advice in mode direct": advised("direct", GIB, "alloc=700m", "alloc=5g"),
      "report of no log": refused(["report", "text"], 2, "not a log of Ration"),
      "report of a word": refused(["report", "ok"], 2, "not a log of Ration"),
      "report of nothing": refused(["report", "missing"], 2, "No such file or directory"),
      "report without a log": refused(["report"], 2, "LOG is required"),
      "report by a wrong word": refused(["report", "text", "--by", "colour"], 2, "--by colour: it must be one of function, library, kind"),
      "check of no log": refused(["check", "text", "--no-leaks"], 2, "not a log of Ration"),
      "check without a condition": refused(["check", "text"], 2, "no condition"),
      "check with a wrong size": refused(["check", "text", "--max-peak", "6Gb"], 2, "--max-peak"),
      "check with a wrong share": refused(["check", "text", "--max-fragmentation", "101"], 2, "no percentage from 0% to 100%; write for example 5%"),
      "check with a fraction": refused(["check", "text", "--max-fragmentation", "0.05"], 2, "may mean 0.05% or 5%; write it with the %"),
      "check with a bare number": refused(["check", "text", "--max-fragmentation", "5"], 2, "text: not a log of Ration")})
