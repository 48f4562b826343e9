#!/usr/bin/env python3
"""`ration diff -o`: the figures in the page are those of `diff --json`, of all callers, whatever names a log has."""
import json
import pathlib
import re

from harness import MIB, expect, expect_that, main
from made_log import BASE, GIB, training
from page_test import DATA, HOSTILE, made, ration


def difference_of(folder, *arguments, status=0):
    """The document in the page, after it was compared with the one that `diff --json` prints."""
    done = ration(folder, "diff", *arguments, "-o", "out.html", status=status)
    expect("stderr", done.stderr, b"ration: wrote out.html: open it in a browser\n")
    documents = [json.loads(each) for each in DATA.findall((pathlib.Path(folder) / "out.html").read_bytes())]
    expect("documents in the page", documents, [json.loads(ration(folder, "diff", *arguments, "--json", status=status).stdout)])
    return documents[0], done.stdout.decode()


def many_callers(count):
    """Each of its own: more than the text lists."""
    def fill(log):
        log.slab(1, BASE, GIB)
        log.python_stacks([("main", "/x/main.py", 1), *((f"layer_{i}", f"/x/part_{i}.py", i) for i in range(count))])
        for i in range(count):
            log.alloc(BASE + i * MIB, MIB, stack=i + 2)
        log.end()
    return fill


def figures(folder):
    before, after = made(folder, "a.jsonl", many_callers(70)), made(folder, "b.jsonl", many_callers(90))
    document, said = difference_of(folder, before, after)
    expect("stdout, verdict", (said, document["holds"], document["reasons"]), ("", None, []))
    device = document["devices"][0]
    expect("the peak", [device[side]["peak_bytes"] for side in ("before", "after", "change")], [70 * MIB, 90 * MIB, 20 * MIB])
    expect("all callers", (len(device["callers"]), sum(each["occurs"] == "new" for each in device["callers"])), (90, 20))
    document, _ = difference_of(folder, before, after, "--by", "library")
    expect("by library", (document["by"], len(document["devices"][0]["callers"])), ("library", 1))


def verdict(folder):
    before, after = made(folder, "a.jsonl", many_callers(2)), made(folder, "b.jsonl", many_callers(3))
    document, said = difference_of(folder, before, after, "--fail-above", "1%", status=1)
    expect("verdict", (document["holds"], len(document["reasons"])), (False, 1))
    expect("the reason on stdout", said, f"--fail-above: {document['reasons'][0]}\n")
    document, said = difference_of(folder, before, after, "--fail-above", "50%")
    expect("it holds", (document["holds"], document["reasons"], said), (True, [], ""))


def hostile(folder):
    def fill(log):
        log.slab(1, BASE, GIB)
        log.python_stacks([(HOSTILE, f"/x/{HOSTILE}.py", 1), ("\x07 bell \\", "/x/\u00e9\u4e2d.py", 2)])
        log.alloc(BASE, MIB, stack=1)
        log.alloc(BASE + MIB, MIB, stack=2)
    odd = 'odd <b>"\'&.jsonl'
    document, _ = difference_of(folder, made(folder, odd, fill), made(folder, "b.jsonl", training))
    expect("the log", document["before"]["logs"], [{"log": odd}])
    expect_that("the caller", any(HOSTILE in each["caller"] for each in document["devices"][0]["callers"]))
    text = (pathlib.Path(folder) / "out.html").read_bytes()
    expect("scripts in the page", len(re.findall(rb"<script\b", text)), 2)
    expect_that("the page is UTF-8", text.decode())


def refused(folder):
    made(folder, "a.jsonl", training)
    for name in ("x.txt", "x", "x.json", "a.jsonl"):
        expect_that(name, b"ends in .html or .htm" in ration(folder, "diff", "a.jsonl", "a.jsonl", "-o", name, status=2).stderr)
    ration(folder, "diff", "a.jsonl", "a.jsonl", "--json", "-o", "x.html", status=2)
    ration(folder, "diff", "a.jsonl", "missing", "-o", "x.html", status=2)
    expect_that("nothing was written", not (pathlib.Path(folder) / "x.html").exists())
    done = ration(folder, "diff", "a.jsonl", "a.jsonl", "-o", "missing/x.html", status=125)
    expect_that(done.stderr, done.stderr.startswith(b"ration: diff: cannot write "))


main({"figures": figures, "verdict": verdict, "hostile names": hostile, "what is no page": refused})
