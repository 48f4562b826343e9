#!/usr/bin/env python3
"""`ration report -o`: the figures in a page are those of `report --json`, whatever the log says, and a file is replaced as
a whole."""
import json
import os
import pathlib
import re
import subprocess

from harness import BUILD, HANG, MIB, clean_environment, expect, expect_that, main, run
from made_log import BASE, GIB, MadeLog, many, training

RATION = BUILD / "bin/ration"
DATA = re.compile(rb'<script type="application/json" id="log">(.*?)</script>', re.S)
HOSTILE = '</script><script>alert(1)</script><!-- "\'& \u2028'


def ration(folder, *arguments, status=0):
    done = subprocess.run([RATION, *arguments], cwd=folder, env=clean_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, timeout=HANG, check=False)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    return done


def made(folder, name, fill, **meta):
    with open(pathlib.Path(folder) / name, "w", encoding="utf-8") as file:
        fill(MadeLog(file, **meta))
    return name


def page_of(folder, *logs):
    """The document in the page of some logs."""
    done = ration(folder, "report", *logs, "-o", "out.html")
    expect("stdout, stderr", (done.stdout, done.stderr), (b"", b"ration: wrote out.html: open it in a browser\n"))
    documents = DATA.findall((pathlib.Path(folder) / "out.html").read_bytes())
    expect("documents in the page", len(documents), 1)
    return json.loads(documents[0])


def compare(folder, *logs):
    """Peaks, refusals, counts and leaks of a page and of the JSON."""
    page, report = page_of(folder, *logs), json.loads(ration(folder, "report", *logs, "--json").stdout)
    for of_page, of_report in zip(page["logs"], report["logs"], strict=True):
        expect("log", (of_page["log"], of_page["pid"], of_page["ended"]), (of_report["log"], of_report["pid"], of_report["ended"]))
        used = [each for each in of_report["devices"] if each["callers"] or each["refused_requests"] or each["reserved_peak_bytes"]]
        for lane, device in zip(of_page["devices"], used, strict=True):
            for key in ("dev", "peak_bytes", "peak_seq", "peak_ts", "reserved_peak_bytes", "allocs", "frees"):
                expect(key, lane[key], device[key])
            expect("refusals", [(each["count"], each["first_seq"], each["remedy"]) for each in lane["remedies"]],
                   [(each["refusals"], each["first_seq"], each["remedy"]) for each in device["refused_requests"]])
            expect("who held then", [[list(pair) for pair in each["held"]] for each in lane["remedies"]],
                   [[[held["caller"], held["live_bytes"]] for held in each["held"]] for each in device["refused_requests"]])
            expect("what grows", lane["growing"], [[each[key] for key in ("caller", "from_bytes", "to_bytes", "oldest_ns")] for each in device["growing"]])
            expect("refusals in the chart", len(lane["refusals"]) + lane["left_out"]["refusals"],
                   sum(each["refusals"] for each in device["refused_requests"]))
            expect("highest point", max(lane["series"]["used"], default=0), device["peak_bytes"])
            expect("highest point of the reserved", max(lane["series"]["reserved"], default=0), device["reserved_peak_bytes"])
            expect("ages", {name: oldest for name, _, oldest in lane["callers"]}, {each["caller"]: each["live_oldest_ns"] for each in device["callers"]})
            for column, key in ((0, "at_peak_bytes"), (2, "requested_bytes"), (4, "live_bytes")):
                expect(f"{key} of all callers", sum(caller[1][column] for caller in lane["callers"]),
                       sum(caller[key] for caller in device["callers"]))
            stack = [sum(column[i] for column in lane["stack"]["bytes"]) for i in range(len(lane["stack"]["times"]))]
            expect("highest sum of callers", max(stack, default=0), device["peak_bytes"])
            expect("sum of callers at the end", stack[-1:] or [0], [sum(caller["live_bytes"] for caller in device["callers"])])
            for moment in lane["moments"]:
                expect(f"bytes of the holders at {moment['why']}", sum(held for _, held in moment["held"][0]) + moment["held"][2], moment["used"])
                if not moment["left_out_areas"]:
                    expect(f"blocks in the map of {moment['why']}", sum(moment["spans"][3::7]), moment["used"])
            peaks = [moment for moment in lane["moments"] if moment["why"] == "peak"]
            expect("map of the peak", [(each["seq"], each["used"]) for each in peaks],
                   [(device["peak_seq"], device["peak_bytes"])] if device["peak_bytes"] else [])
    return page


def synthetic(folder):
    page = compare(folder, made(folder, "a.jsonl", training),
                   made(folder, "b.jsonl", training, pid=101, start_unix_ns=1_700_000_000_400_000_000))
    expect("start of the second", page["logs"][1]["start_ns"], 400_000_000)
    leaks = {name: figures[4] for name, figures, _ in page["logs"][0]["devices"][0]["callers"] if figures[4]}
    expect("leaks", leaks, {"leak (leaky.py:12), from main (train.py:40)": 5 * 16 * MIB})
    frames = [(row[0], page["names"][row[1]]) for row in page["logs"][0]["devices"][0]["flame"]]
    expect("frames", sorted(frames), [(0, "main (train.py:40)"), (1, "leak (leaky.py:12)"), (1, "load (loader.py:7)"), (1, "step (model.py:88)")])


def real(mode):
    def case(folder):
        run("endings", "return", folder=folder, RATION_LIMIT=256 * MIB, SIMCUDA_DEVICES="1GiB", **mode)
        compare(folder, "run.jsonl")
    return case


def large(folder):
    """More than is drawn: what is left out is counted, and the sums stay."""
    page = compare(folder, made(folder, "large.jsonl", lambda log: many(log, 120_000)))
    lane = page["logs"][0]["devices"][0]
    expect_that("points are left out", lane["left_out"]["points"] > 0)
    expect_that(f"few points are left: {len(lane['series']['times'])}", len(lane["series"]["times"]) > 5_000)
    expect_that("blocks are drawn together", any(len(moment["spans"]) / 7 < moment["blocks"] for moment in lane["moments"]))


def hostile(folder):
    def fill(log):
        log.slab(1, BASE, GIB)
        log.python_stacks([(HOSTILE, f"/x/{HOSTILE}.py", 1), ("\x07 bell \\", "/x/\u00e9\u4e2d.py", 2)])
        log.alloc(BASE, MIB, stack=1)
        log.alloc(BASE + MIB, MIB, stack=2, api=HOSTILE)
        log.refuse(8 * GIB, 2 * MIB, reason=HOSTILE)
    made(folder, "h.jsonl", fill, exe=f"/x/{HOSTILE}")
    odd = os.fsencode(folder) + b"/odd \xff\xfe\"<b>.jsonl"
    os.rename(f"{folder}/h.jsonl", odd)
    page = page_of(folder, odd)
    expect("program", page["logs"][0]["program"], f"/x/{HOSTILE}")
    text = (pathlib.Path(folder) / "out.html").read_bytes()
    expect("scripts in the page", len(re.findall(rb"<script\b", text)), 3)
    expect_that("the page is UTF-8", text.decode())


def not_written(folder):
    made(folder, "a.jsonl", training)
    (pathlib.Path(folder) / "there.html").mkdir()
    (pathlib.Path(folder) / "full.html").symlink_to("/dev/full")
    for target in ("missing/out.html", "there.html", "full.html"):
        done = ration(folder, "report", "a.jsonl", "-o", target, status=125)
        expect_that(f"one line: {done.stderr}", done.stderr.startswith(b"ration: report: cannot write ") and done.stderr.count(b"\n") == 1)
    old = pathlib.Path(folder) / "old.html"
    old.write_text("old")
    (pathlib.Path(folder) / "bad.jsonl").write_text("no log\n")
    ration(folder, "report", "bad.jsonl", "-o", "old.html", status=2)
    expect("what a failed report leaves", (old.read_text(), sorted(os.listdir(folder))), ("old", ["a.jsonl", "bad.jsonl", "full.html", "old.html", "there.html"]))
    ration(folder, "report", "/dev/null", "-o", "old.html", status=2)
    ration(folder, "report", "a.jsonl", "--json", "-o", "old.html", status=2)
    for name in ("x.txt", "x", "x.json"):
        expect_that(name, b"ends in .html or .htm" in ration(folder, "report", "a.jsonl", "-o", name, status=2).stderr)


def empty(folder):
    page = page_of(folder, made(folder, "e.jsonl", lambda log: log.end()))
    expect("devices", page["logs"][0]["devices"], [])


if __name__ == "__main__":
    main({"two processes": synthetic, "endings": real({}), "endings, slabs": real({"RATION_BACKING": "slab"}),
          "endings, direct": real({"RATION_MODE": "direct"}), "endings, async": real({"RATION_MODE": "async"}),
          "a large log": large, "hostile names": hostile, "a page that cannot be written": not_written, "no memory": empty})
