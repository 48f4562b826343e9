#!/usr/bin/env python3
"""`ration report` and `ration check` over logs of whole programs: their figures are those that the records add up to."""
import collections
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

from log_of_every_kind import END, block, end_of, write
from harness import BUILD, GIB, HANG, MIB, PROGRAMS, SANITIZED, clean_environment, command_environment, expect, expect_that, main, of_type, run, state_folder

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
            expect("leaks", {leak["caller"]: leak["bytes"] for leak in report["leaks"]}, dict(by_api))
            device = report["logs"][0]["devices"][0]
            expect("reserved", device["reserved_peak_bytes"], end["reserved_peak"][0])
            expect("refusals", sum(each["refusals"] for each in device["refused_requests"]), end["ooms"])
            text = ration("report", pathlib.Path(folder) / name)
            expect_that(f"the peak is not in {text}", f"{peak} bytes" in text)
    return case


def checked(folder):
    log, junit = pathlib.Path(folder) / "run.jsonl", pathlib.Path(folder) / "junit.xml"
    records = run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB").logs["run.jsonl"]
    peak, at, left = added_up(records)
    mib = -(-peak // MIB)
    expect("a peak that held", ration("check", log, "--max-peak", f"{mib}MiB", "--max-fragmentation", "5%"), "")
    expect("sizes of devices", ration("check", log, "--max-peak", f"0={mib}MiB", "--max-fragmentation", "0.05"), "")
    expect_that("no memory at all", ration("check", log, "--max-peak", "0", status=1).startswith("--max-peak: device 0: peak used "))
    expect_that("of the first one", ration("check", log, "--max-peak", "0=1MiB", status=1).startswith("--max-peak: device 0: peak used "))
    done = subprocess.run([BUILD / "bin/ration", "check", log, "--max-peak", "7=1MiB"], capture_output=True, text=True, check=False)
    expect_that(f"of one that is not there: {done.stderr}", done.returncode == 2 and 'there is no device "7", only 0' in done.stderr)
    said = ration("check", log, "--max-peak", "1MiB", "--no-leaks", "--no-failures", "--junit", junit, status=1).splitlines()
    expect("conditions", [line.split(":")[0] for line in said], ["--max-peak", "--no-leaks", "--no-failures"])
    expect_that(f"the peak's record in {said[0]}", f"({peak} bytes) at record {at}" in said[0])
    expect_that(f"the leaks in {said[1]}", f"{len(left)} blocks" in said[1])
    expect_that(f"the refusal in {said[2]}", "1 refusal of cuMemAlloc_v2, reason limit" in said[2])
    found = json.loads(ration("check", log, "--max-peak", "1MiB", "--no-leaks", "--no-failures", "--json", status=1))
    expect("JSON", (found["schema"], found["holds"], [each["condition"] for each in found["logs"][0]["conditions"] if not each["holds"]]),
           ("ration.check/1", False, [line.split(":")[0] for line in said]))
    expect("its reasons", [f"{each['condition']}: {reason}" for each in found["logs"][0]["conditions"] for reason in each["reasons"]], said)
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
    caveat = "no end record: killed, still running, left by _exit or exec, or its disk was full"
    freed = log.with_name("freed.jsonl")
    freed.write_text("".join(line + "\n" for line in log.read_text().splitlines() if json.loads(line)["t"] == "meta"))
    for view in (["report"], ["report", "--leaks"], ["diff", log], ["report", "--by", "library"]):
        expect_that(f"{view} says that there is no end", caveat in ration(*view, log))
    for arguments in (["convert", log, "--to", "csv"], ["replay", freed], ["check", log, "--max-fragmentation", "100%"]):
        ration(*arguments, said=[f"{arguments[0]}: {arguments[1]}: {caveat}"])
    shown, = json.loads(ration("report", log, "--json"))["logs"]
    device, = shown["devices"]
    least = added_up(map(json.loads, log.read_text().splitlines()))[0]
    expect("in JSON", [shown[key] for key in ("ended", "cut_off", "peak_is_exact")] + [device[key] for key in ("peak_bytes", "least_peak_bytes")],
           [False, False, False, least, least])
    expect_that("in text", "peak used at least" in ration("report", log))
    for each in (log, freed):
        expect("no proof of a peak", ration("check", each, "--max-peak", "100%", status=1), "--max-peak: the log has no end record: the peak is unknown\n")
    least = f"replay: {freed}: min_limit is a lower bound: the records that are missing may need more"
    found = json.loads(ration("replay", freed, "--find-min", "--json", said=[f"replay: {freed}: {caveat}", least]))
    expect("of a replay", (found["exact"], found["min_limit_is_least"]), (False, True))
    expect("of a replay", json.loads(ration("replay", freed, "--json", said=[f"replay: {freed}: {caveat}"]))["ended"], False)
    expect("nothing is left, as far as is known", ration("report", "--leaks", freed).splitlines(),
           [f"{freed}: {caveat}", f"{freed}: every block was freed, as far as the log goes"])
    for condition in ("--no-leaks", "--no-failures"):
        expect_that("no proof", "the log has no end record" in ration("check", log, condition, status=1))


def at_a_record(folder):
    """A log that ends between two records has at least the peak that they have; without any, none."""
    run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    lines = (pathlib.Path(folder) / "run.jsonl").read_bytes().splitlines(keepends=True)
    ration("check", "run.jsonl", "--max-peak", "100%", cwd=folder)
    for count in range(1, len(lines)):
        (pathlib.Path(folder) / "cut.jsonl").write_bytes(b"".join(lines[:count]))
        report = json.loads(ration("report", "cut.jsonl", "--json", cwd=folder))
        least = added_up(map(json.loads, lines[1:count]))[0]
        expect(f"the peak after {count} lines", (report["peak_bytes"], report["least_peak_bytes"], report["logs"][0]["peak_is_exact"]), (least or None, least, False))
        expect("no proof", ration("check", "cut.jsonl", "--max-peak", "100%", cwd=folder, status=1), "--max-peak: the log has no end record: the peak is unknown\n")


def lost_before_the_end(folder):
    """An end that counts lost records has the peaks, or they are unknown."""
    end = END | {"dropped": 5}
    for peaks, known in (([9 * MIB, 0], 9 * MIB), ([], None)):
        log = write(pathlib.Path(folder) / "lost.jsonl", block(0x1000, 4 * MIB), end_of(0x1000), end | {"peak": peaks, "reserved_peak": peaks})
        report = json.loads(ration("report", log, "--json"))
        expect("peak", (report["logs"][0]["dropped"], report["logs"][0]["devices"][0]["peak_bytes"]), (5, known))
        said = ration("check", log, "--max-peak", "100%", status=0 if known else 1)
        expect("no proof", said, "" if known else "--max-peak: the log lacks 5 records: the peak is unknown\n")


def empty_beside_others(folder):
    """An empty log is named, and the others are answered."""
    run("endings", "return", folder=folder, RATION_LIMIT=LIMIT, SIMCUDA_DEVICES="1GiB")
    (pathlib.Path(folder) / "none.jsonl").touch()
    why = "none.jsonl: it is empty: the program has made no CUDA call, or could not write it"
    for names in (("none.jsonl", "run.jsonl"), ("run.jsonl", "none.jsonl")):
        for words in ([], ["--leaks"], ["--json"]):
            expect(f"report {words}", ration("report", *names, *words, cwd=folder, said=[f"report: {why}"]), ration("report", "run.jsonl", *words, cwd=folder))
        ration("report", *names, "-o", "page.html", cwd=folder, said=[f"report: {why}", "wrote page.html: open it in a browser"])
        lines = ration("check", *names, "--max-peak", "100%", "--max-fragmentation", "100%", cwd=folder, status=1, said=[f"check: {why}"]).splitlines()
        expect("check", lines[:-1], ["none.jsonl: --max-peak: the log is empty", "none.jsonl: --max-fragmentation: the log is empty"])
        found = json.loads(ration("check", *names, "--max-peak", "100%", "--json", cwd=folder, status=1, said=[f"check: {why}"]))
        expect("in JSON", {each["log"]: each["holds"] for each in found["logs"]}, {"none.jsonl": False, "run.jsonl": True})
    for words in (["report", "none.jsonl"], ["check", "none.jsonl", "--no-growth"], ["convert", "none.jsonl", "--to", "csv"]):
        ration(*words, cwd=folder, status=2, said=[f"{words[0]}: {why}"])
    (pathlib.Path(folder) / "other.jsonl").touch()
    other = why.replace("none", "other")
    for words in ([], ["-o", "page.html"]):
        ration("report", "none.jsonl", "other.jsonl", *words, cwd=folder, status=2, said=[f"report: {why}", f"report: {other}"])


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
    for names, said in ((("-", "-"), "- is the log - again"), (("-", "/dev/stdin"), "/dev/stdin is the log - again"), (("-", "run.jsonl"), "")):
        for is_pipe in (True, False):
            with open(pathlib.Path(folder) / "run.jsonl", "rb") as log:
                given = {"input": log.read()} if is_pipe else {"stdin": log}
                done = subprocess.run([RATION, "check", *names, "--no-leaks", "--json"], cwd=folder, env=clean_environment(), capture_output=True, check=False,
                                      **given)
            twice = is_pipe and not said  # what a pipe has cannot be looked at before
            expect(f"{names}, pipe {is_pipe}, {done.stderr}", (len(json.loads(done.stdout)["logs"]), said in done.stderr.decode()), (2 if twice else 1, True))
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
    expect("leaks", [(leak["memory"], leak["caller"], leak["bytes"], leak["count"]) for leak in report["leaks"]],
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
        refusal = json.loads(ration("report", pathlib.Path(folder) / "run.jsonl", "--json"))["logs"][0]["devices"][0]["refused_requests"][-1]
        advice = re.search(r"a limit of [^(]*\(([0-9]+) bytes\) (?:would have served|may serve) it", refusal["remedy"])
        expect_that(f"a limit in {refusal['remedy']}", advice)
        expect_that(f"{advice[1]} is more", int(advice[1]) > refusal["limit"])
        expect_that(f"under {advice[1]} it is served", ended(advice[1]))
        print(refusal["remedy"])
    return case


def lacking(mode, limit, *sizes, page=512):
    """The summary and the report have one figure of what a request lacked: with so much more it is served, with less not."""
    def case(folder):
        def ended(limit):
            done = subprocess.run([RATION, "run", "--sim", "1GiB", "--mode", mode, "--limit", str(limit), "--log", "lack.jsonl", "--force", "--summary", "summary",
                                   "--", PROGRAMS / "steps", "init", "context=0", *sizes], cwd=folder, env=command_environment(), capture_output=True,
                                  text=True, timeout=HANG, check=False)
            return done.stdout.splitlines()[-1].endswith(": 0")
        expect_that("it is refused at first", not ended(limit))
        summary = json.loads((pathlib.Path(folder) / "summary").read_text())["processes"][0]["devices"][0]["lacking_bytes"]
        refusal, = json.loads(ration("report", "lack.jsonl", "--json", cwd=folder))["logs"][0]["devices"][0]["refused_requests"]
        expect("in the report", refusal["lacking_bytes"], summary)
        expect(f"served with {summary} more, and with a page less", (ended(limit + summary), ended(limit + summary - page)), (True, False))
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
        expect("peak", (report["peak_bytes"], report["least_peak_bytes"], report["peak_seq"], report["logs"][0]["peak_is_exact"]), (None, peak, at, False))
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
           "no device memory was requested, as far as the log goes: the peak is unknown")


def trained(folder, way, status=0, stacks="python"):
    log = pathlib.Path(folder) / f"{way}-{stacks}.jsonl"
    done = subprocess.run([RATION, "run", "-q", "--sim", "4GiB", "--limit", "1GiB", "--stacks", stacks, "--log", log, "--", sys.executable,
                           pathlib.Path(__file__).parents[1] / "preload/programs/growing.py", way],
                          env=clean_environment() | {"RATION_STATE_DIR": state_folder()}, capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"status of {way}, having said {done.stderr}", done.returncode, status)
    return log


def growing(folder):
    """A list that grows is named, though it is freed at the end; weights, activations and a cache that is full are not."""
    log, grows = trained(folder, "forever"), r"allocate \(growing.py:13\), from remember \(growing.py:26\) grows: the least that it held rose from "
    said = ration("check", log, "--no-growth", status=1)
    expect_that(f"one caller in {said}", re.fullmatch(f"--no-growth: device 0: {grows}.*\n", said))
    text = ration("report", log)
    expect_that(f"in {text}", re.search(rf"\nGROWS through the run, on device 0:\n  {grows}[0-9]+MiB to [0-9]+MiB; its oldest block lived for ", text))
    found, = json.loads(ration("report", log, "--json"))["logs"][0]["devices"][0]["growing"]
    expect_that(f"{found}", "remember" in found["caller"] and found["to_bytes"] > 4 * found["from_bytes"] > 0 and found["oldest_ns"] > 0)
    cached = trained(folder, "cached")
    expect("no growth", ration("check", cached, "--no-growth"), "")
    expect_that("nor in the report", "GROWS" not in ration("report", cached))
    for each, is_said in ((cached, False), (trained(folder, "cached", stacks="native"), True)):
        said = ration("report", each)
        expect(f"in {said}", "recorded without --stacks python: the interpreter's functions are shown in place of callers" in said, is_said)


def refused_first(folder):
    """A refusal comes first: when, how much was free, and who held what; weights are no leak then."""
    log = trained(folder, "refused", status=1)
    lines = ration("report", log).splitlines()
    expect_that(f"{lines[:3]}", re.fullmatch(r"REFUSED on device 0: 1 call of cuMemAlloc_v2, over the limit, at [0-9.]+ s, record [0-9]+", lines[2]))
    expect_that(lines[3], re.fullmatch(rf"  it asked for 1.00GiB \({1024 * MIB} bytes\): [0-9]+MiB \([0-9]+ bytes\) short", lines[3]))
    expect("who held", [line.strip() for line in lines[6:9]],
           [f"the program held 106MiB ({106 * MIB} bytes) then:", "96MiB in 12 blocks by allocate (growing.py:13), from load_weights (growing.py:21)",
            "10MiB in 10 blocks by allocate (growing.py:13), from remember (growing.py:26)"])
    document = json.loads(ration("report", log, "--json"))["logs"][0]
    refusal, = document["devices"][0]["refused_requests"]
    expect("in JSON", ([each["live_bytes"] for each in refusal["held"]], refusal["lacking_bytes"], document["ended_cleanly"]),
           ([96 * MIB, 10 * MIB], 116 * MIB, False))
    expect("a clean end", json.loads(ration("report", trained(folder, "cached"), "--json"))["logs"][0]["ended_cleanly"], True)


def from_refusal_to_name(*options, logs=1, words=(), **variables):
    """Three commands, each named by the one before: a program that is refused, the same with a log of the stacks, its report. The second
    needs none of the variables that the first was given."""
    def case(folder):
        environment = command_environment() | {"PATH": f"{RATION.parent}:{os.environ['PATH']}"}
        shown = {"cwd": folder, "capture_output": True, "text": True, "timeout": HANG, "check": False}
        program = pathlib.Path(__file__).parents[1] / "preload/programs/growing.py"
        refused = subprocess.run(["ration", "run", "--sim", "1GiB", *options, "--", sys.executable, program, "forever", *words],
                                 env=environment | variables, **shown)
        expect_that(f"nothing internal in {refused.stderr}", "RATION_FLAGS" not in refused.stderr and "RATION_SUMMARY" not in refused.stderr)
        again, report = re.search(r"^ration: to see what held the memory: (?:ration report .*; to see which functions allocated it: )?"
                                  r"(.*ration run .*); (ration report .*)$", refused.stderr, re.M).groups()
        logged = subprocess.run(["sh", "-c", again], env=environment, **shown)
        expect(f"the second run, {again}: {logged.stderr}", (logged.returncode, refused.returncode), (1, 1))
        same, = re.findall(r"^ration: to see what held the memory: (.*)$", logged.stderr, re.M)
        for command in (report, same):
            text = subprocess.run(["sh", "-c", command], env=environment, **shown).stdout
            found = re.findall(r"^GROWS through the run, on device 0:\n  allocate \(growing.py:[0-9]+\), from remember \(growing.py:[0-9]+\)",
                               text, re.M)
            expect(f"the name in {text}, by {command}", len(found), logs)
            expect(f"what a larger limit would do, in {text}", text.count("so a larger limit would only delay the refusal"), logs)
    return case


def of_graphs(folder):
    """What only the driver's pools held is told, too."""
    log = write(pathlib.Path(folder) / "run.jsonl",
                {"t": "sample", "tid": 7, "dev": 0, "api": "cuGraphLaunch", "pool_reserved": 64 * MIB})
    expect_that("the reserved peak", f"peak reserved at least 64MiB ({64 * MIB} bytes)" in ration("report", log))


def two_ranks(folder):
    """`check`, `replay` and `diff` take a log of each process: a line for each, and sums."""
    for name, sizes in (("a", [3, 5]), ("b", [3, 7])):
        (pathlib.Path(folder) / name).mkdir()
        run("steps", "init", "context=0", *(f"alloc={size}m" for size in sizes), folder=pathlib.Path(folder) / name, SIMCUDA_DEVICES="1GiB",
            RATION_MODE="direct")
        os.rename(f"{folder}/{name}/run.jsonl", f"{folder}/{name}.jsonl")
    peak = {name: json.loads(ration("report", f"{name}.jsonl", "--json", cwd=folder))["peak_bytes"] for name in "ab"}
    said = ration("check", "a.jsonl", "b.jsonl", "--no-leaks", "--max-peak", "9MiB", "--junit", "junit.xml", status=1, cwd=folder).splitlines()
    expect("lines", [line.split(": ")[:2] for line in said[:3]],
           [["a.jsonl", "--no-leaks"], ["b.jsonl", "--max-peak"], ["b.jsonl", "--no-leaks"]])
    expect_that(said[3], said[3].startswith("2 logs: sum of peaks (each at its own time) ") and f"({sum(peak.values())} bytes); not freed 4 blocks, " in said[3])
    expect("suites", [suite.get("name") for suite in xml.parse(f"{folder}/junit.xml").getroot()], ["a.jsonl", "b.jsonl"])
    expect("all hold", ration("check", "a.jsonl", "b.jsonl", "--no-growth", cwd=folder), "")
    document = json.loads(ration("check", "a.jsonl", "b.jsonl", "--no-growth", "--json", cwd=folder))
    expect("sum of peaks", document["peak_bytes_sum"], sum(peak.values()))
    words = ("replay", "a.jsonl", "b.jsonl", "--find-min", "--mode", "direct")
    least = {name: int(ration("replay", f"{name}.jsonl", *words[3:], cwd=folder).splitlines()[-1].removeprefix("min_limit=")) for name in "ab"}
    lines = ration(*words, cwd=folder).splitlines()
    expect_that(f"{lines}", lines[0].startswith("a.jsonl: device 0: needs ") and lines[1].startswith("b.jsonl: device 0: needs ")
                and f"all 2 together need {sum(least.values()) // MIB}MiB ({sum(least.values())} bytes)" == lines[2])
    expect("the limit of each", lines[3], f"min_limit={least['b']}")
    document = json.loads(ration(*words, "--json", cwd=folder))
    expect("in JSON", (document["exact"], document["fits"], document["min_arena_bytes"], document["min_limit_sum"], [each["log"] for each in document["logs"]]),
           (True, True, least["b"], sum(least.values()), ["a.jsonl", "b.jsonl"]))
    document = json.loads(ration("diff", "a.jsonl", "b.jsonl", "--json", "--", "b.jsonl", cwd=folder))
    expect("sums", [(document[side]["logs"], document["devices"][0][side]["peak_bytes"]) for side in ("before", "after")],
           [([{"log": "a.jsonl"}, {"log": "b.jsonl"}], sum(peak.values())), ([{"log": "b.jsonl"}], peak["b"])])
    once = ["diff: ./a.jsonl is the log a.jsonl again: it is counted once"]
    expect("a log once", json.loads(ration("diff", "a.jsonl", "./a.jsonl", "--json", "--", "b.jsonl", cwd=folder, said=once))["before"]["logs"], [{"log": "a.jsonl"}])
    said = ration("diff", "a.jsonl", "b.jsonl", "--", "b.jsonl", cwd=folder)
    expect("named", said.splitlines()[:2], ["A: sum of 2 logs, a.jsonl first", "B: b.jsonl"])
    expect_that(said, "sum of peaks used" in said and "sum of peaks reserved" in said)


def other_inputs(folder):
    """Each reader takes a log from standard input, and one that gzip compressed, also in several members."""
    run("steps", "init", "context=0", "alloc=3m", folder=folder, SIMCUDA_DEVICES="1GiB")
    plain = (pathlib.Path(folder) / "run.jsonl").read_bytes()
    half = plain.index(b"\n") + 1
    (pathlib.Path(folder) / "run.gz").write_bytes(gzip.compress(plain[:half]) + gzip.compress(plain[half:]))
    for words in (["report", "LOG", "--json"], ["check", "LOG", "--no-leaks"], ["replay", "LOG", "--find-min"], ["convert", "LOG", "--to", "csv"],
                  ["diff", "LOG", "run.jsonl"], ["report", "LOG", "-o", "page.html"]):
        def done(log, **more):
            it = subprocess.run([RATION, *(log if word == "LOG" else word for word in words)], cwd=folder, env=clean_environment(),
                                capture_output=True, check=False, **more)
            said = it.stdout.decode().replace(f"A: {log}", "A: run.jsonl").replace(f'"{log}"', '"run.jsonl"')
            page = (pathlib.Path(folder) / "page.html").read_text() if "-o" in words else ""
            return it.returncode, said, page.replace(f'{{"log":"{log}"', '{"log":"run.jsonl"')
        wanted = done("run.jsonl")
        expect_that(f"{words} reads it", wanted[0] == (1 if words[0] == "check" else 0))
        expect(f"{words}, gzip", done("run.gz"), wanted)
        expect(f"{words}, stdin", done("-", input=plain), wanted)
    (pathlib.Path(folder) / "cut.gz").write_bytes(gzip.compress(plain)[:-20])
    ration("report", "cut.gz", cwd=folder, status=2, said=[f"report: cut.gz: the compressed file was cut off, after line {len(plain.splitlines()) - 1}"])


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
      "a log that ends between two records": at_a_record,
      "records that were lost before the end": lost_before_the_end,
      "an empty log beside others": empty_beside_others,
      "a log named twice": named_twice,
      "a part of a log": part_named_too,
      "host memory": host_memory,
      "a log that was cut off": cut_off,
      "two ranks": two_ranks,
      "standard input, and gzip": other_inputs,
      # An interpreter that is not instrumented cannot load a library that is.
      **({} if SANITIZED else {"a list that grows": growing, "a refusal first": refused_first,
                                "from a refusal to a name": from_refusal_to_name("--limit", "150MiB"),
                                "from a refusal to a name, two processes": from_refusal_to_name("--limit", "150MiB", words=["fork"], logs=2),
                                "from a refusal to a name, a group": from_refusal_to_name("--group", "g", "--group-limit", "150MiB"),
                                "from a refusal to a name, variables": from_refusal_to_name(
                                    RATION_GROUP="g", RATION_GROUP_LIMIT="150MiB", RATION_STATE_DIR=f"{state_folder()}-other"),
                                "from a refusal to a name, another's variable": from_refusal_to_name(CUDA_DEVICE_MEMORY_LIMIT="150m"),
                                **{f"from a refusal to a name, a log of {stacks} stacks": from_refusal_to_name(
                                    "--limit", "150MiB", "--log", "run.jsonl", "--stacks", stacks) for stacks in ("none", "native")}}),
      "memory of graphs alone": of_graphs,
      **{f"advice for a stream-ordered request, {mode}": advised(mode, 48 * MIB, "alloc=3m", "alloc=5m", "alloc_async=40m", **settings)
         for mode, settings in (("pool", {"RATION_BACKING": "vmm"}), ("direct", {}))},
      "advice of whole granules": advised("pool", 3 * GIB, "alloc=5m", "alloc=6g", RATION_BACKING="vmm"),
      "advice for what is preallocated": advised("pool", GIB, *["alloc=1m"] * 3, "alloc=700m", "alloc=5g", RATION_BACKING="vmm"),
      "advice in mode async": advised("async", GIB, *["alloc=1m"] * 3, "alloc=700m", "alloc=5g"),
      "advice in mode direct": advised("direct", GIB, "alloc=700m", "alloc=5g"),
      "what a request lacked, granules": lacking("pool", 40 * MIB, "alloc=8m", "alloc=14m", "alloc=39m", page=2 * MIB),
      "what a request lacked, beside free memory": lacking("pool", 40 * MIB, "alloc=1m", "alloc=1m", "alloc=20m", "free=0", "free=2", "alloc=60m",
                                                            page=2 * MIB),
      **{f"what a request lacked, mode {mode}": lacking(mode, 74 * MIB, "alloc_async=4m", "alloc_async=36m") for mode in ("async", "pool")},
      "report of no log": refused(["report", "text"], 2, "not a log of Ration"),
      "report of a word": refused(["report", "ok"], 2, "not a log of Ration"),
      "report of nothing": refused(["report", "missing"], 2, "No such file or directory"),
      "report without a log": refused(["report"], 2, "LOG is required"),
      "report by a wrong word": refused(["report", "text", "--by", "colour"], 2, "--by colour: it must be one of caller, library, thread"),
      "check of no log": refused(["check", "text", "--no-leaks"], 2, "not a log of Ration"),
      "check without a condition": refused(["check", "text"], 2, "no condition"),
      "check with a wrong size": refused(["check", "text", "--max-peak", "6Gb"], 2, "--max-peak"),
      "check with a wrong share": refused(["check", "text", "--max-fragmentation", "101"], 2, "not a percentage from 0% to 100%; write, for example, 5%"),
      "check with a bare number": refused(["check", "text", "--max-fragmentation", "5"], 2, "text: not a log of Ration")})
