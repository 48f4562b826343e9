#!/usr/bin/env python3
"""What the command says of a line that it cannot parse: one line, which begins with the verb and names what is wrong; with what
was likely meant only where that is near. Exit status 125 of `ration run`, which starts nothing, 2 of the others."""
import subprocess

from harness import BUILD, HANG, clean_environment, expect, main

SIMULATED = "write for example 16GiB, 2x8GiB or 8GiB,4GiB"
LINES = {
    "-x": "-x is not an option (`ration help` lists them)",
    "reprot": "unknown verb 'reprot'; the nearest is report",
    "launch": "unknown verb 'launch' (`ration help` lists them)",
    "help reprot": "help: unknown verb 'reprot'; the nearest is report",
    "ps --jsn": "ps: --jsn is not an option; the nearest is --json",
    "ps --colour": "ps: --colour is not an option (`ration help ps` lists them)",
    "ps a b": 'ps: "a" is one argument too many (`ration help ps`)',
    "set lab --lmit 3GiB": "set: --lmit is not an option; the nearest is --limit",
    "set": "set: TARGET is required",
    "top --interval x": "top: --interval = x cannot be read",
    "check a.jsonl --max-peek=3GiB": "check: --max-peek is not an option; the nearest is --max-peak",
    "convert a.jsonl": "convert: --to is required",
    "find-min --toleranse 3 ls": "find-min: --toleranse is not an option; the nearest is --tolerance",
    "run --lmit 3GiB ls": "run: --lmit is not an option; the nearest is --limit",
    "run --everything ls": "run: --everything is not an option (`ration run --help` lists those of `ration run`)",
    "run --limit 1g --limit 2g ls": "run: --limit: given more than once",
    "run --sim nonsense ls": f"run: --sim nonsense: it does not begin with a number; {SIMULATED}",
    "run --sim 0x8GiB ls": f"run: --sim 0x8GiB: 0 devices are none; the fewest is 1; {SIMULATED}",
    "run --sim 8GiB, ls": "run: --sim 8GiB,: it is no list of devices; likely meant: 8GiB",
    "run --sim=100 ls": "run: --sim 100: a device of 100 bytes is none; the smallest has 1MiB; likely meant: 100GiB or 100MiB",
    "run --sim 999x8GiB ls": f"run: --sim 999x8GiB: a simulated machine has at most 16 devices; {SIMULATED}",
    "run --sim 100TiB ls": f"run: --sim 100TiB: a simulated machine has at most 16TiB, all devices together; {SIMULATED}",
    "env --sim nonsense": f"env: --sim nonsense: it does not begin with a number; {SIMULATED}",
    "find-min --sim 50% ls": f"find-min: --sim 50%: a share has no meaning here: a simulated device needs a size in bytes; {SIMULATED}",
    "find-faults --sim 2X8GiB ls": "find-faults: --sim 2X8GiB: it is no list of devices; likely meant: 2x8GiB",
}


def ration(line):
    return subprocess.run([BUILD / "bin/ration", *line.split()], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False)


def said(line, sentence):
    def case(_):
        done = ration(line)
        expect("stderr", done.stderr, f"ration: {sentence}\n")
        expect("stdout and status", (done.stdout, done.returncode), ("", 125 if line.startswith("run ") else 2))
    return case


def version(_):
    expect("-V", ration("-V").stdout, ration("--version").stdout)


main({line: said(line, sentence) for line, sentence in LINES.items()} | {"version": version})
