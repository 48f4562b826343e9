#!/usr/bin/env python3
"""What the command says of a line that it cannot parse: one line, which begins with the verb and names what is wrong; with what
was likely meant only where that is near. Exit status 125 of `ration run`, which starts nothing, 2 of the others."""
import json
import os
import pty
import subprocess

from harness import BUILD, HANG, command_environment, expect, expect_that, main

SIMULATED = "write, for example, 16GiB, 2x8GiB or 8GiB,4GiB"
LINES = {
    "-x": "-x is not an option (`ration help` lists them)",
    "reprot": "unknown verb \"reprot\"; the nearest is report",
    "rnu": "unknown verb \"rnu\"; the nearest is run",
    "launch": "unknown verb \"launch\"; ours is ration run -- COMMAND",
    "exec": "unknown verb \"exec\"; ours is ration run -- COMMAND",
    "status": "unknown verb \"status\"; ours is ration ps",
    "config --check f": "unknown verb \"config\"; ours is ration env, ration env --files or ration env --check FILE",
    "version": "unknown verb \"version\"; ours is ration --version",
    "/bin/true x": "unknown verb \"/bin/true\"; to run that program write ration run -- /bin/true",
    "python3 train.py": "unknown verb \"python3\"; to run that program write ration run -- python3",
    "run --memory 3GiB ls": "run: --memory is not an option; ours is --limit",
    "set lab --memory 3GiB": "set: --memory is not an option; ours is --limit",
    "ps --memory 3GiB": "ps: --memory is not an option (`ration help ps` lists them)",
    "report a --html b": "report: --html is not an option; ours is -o FILE.html",
    "ps --follow": "ps: --follow is not an option; ours is --watch",
    "x": "unknown verb \"x\" (`ration help` lists them)",
    "help reprot": "help: unknown verb \"reprot\"; the nearest is report",
    "ps --jsn": "ps: --jsn is not an option; the nearest is --json",
    "ps --colour": "ps: --colour is not an option (`ration help ps` lists them)",
    "ps --fail": "ps: --fail is not an option (`ration help ps` lists them)",
    "ps a b": 'ps: unexpected argument "a" (`ration help ps`)',
    "ps -- -x": 'ps: unexpected argument "-x" (`ration help ps`)',
    "set lab --lmit 3GiB": "set: --lmit is not an option; the nearest is --limit",
    "set": "set: TARGET is required",
    "set lab --limit": "set: --limit needs a value",
    "top --interval x": "top: --interval x: it must be a time from 0.1 to 86400 seconds; write, for example, 5 or 500ms",
    "ps --watch=1x": "ps: --watch 1x: it must be a time from 0.1 to 86400 seconds; write, for example, 5 or 500ms",
    "top --once": "top: --once is not an option; ours is ration ps",
    "top --json": "top: --json is not an option; ours is ration ps --watch --json",
    "top": "top: it needs a terminal with a cursor, and a keyboard; `ration ps` prints the tables, `ration ps --watch` again and again",
    "doctor --pid x": "doctor: --pid x: it must be the number of a process",
    "find-faults --first 0 ls": "find-faults: --first 0: it must be a number from 1 to 1000000",
    "find-faults --first x ls": "find-faults: --first x: it must be a number from 1 to 1000000",
    "find-min --timeout 5d ls": "find-min: --timeout 5d: it must be a number of seconds above 0, or have a unit, ms s m h; write, for example, 30s",
    "report a --js": "report: --js is not an option; the nearest is --json",
    "report a --by siz": "report: --by siz: it must be one of caller, library, thread, size; likely meant: size",
    "report a -o -": "report: -o -: a page is a file that ends in .html or .htm; write, for example, run.html",
    "report a -o x.txt": "report: -o x.txt: a page is a file that ends in .html or .htm; write, for example, run.html",
    "ps --textfile -": "ps: --textfile -: it replaces a file; --prometheus prints the same",
    "convert a --to csvv": "convert: --to csvv: it must be one of chrome, pprof, collapsed, torch, rmm-csv, csv; likely meant: csv",
    "replay a --mode poll": "replay: --mode poll: it must be one of pool, direct, async; likely meant: pool",
    "ps ––json": 'ps: unexpected argument "––json" (`ration help ps`); likely cause: an en dash (–) for a minus',
    "“ps”": 'unknown verb "“ps”" (`ration help` lists them); likely cause: typographic quotation marks (“)',
    "check a --max-peak “1GiB”": "check: --max-peak “1GiB”: a size is written in plain ASCII; write, for example, 8GiB, 40% or 0.4"
                                 "; likely cause: typographic quotation marks (“)",
    "find-min --tolerance “1MiB” ls": "find-min: --tolerance “1MiB”: a size is written in plain ASCII; write, for example, 64MiB or 0.5%"
                                      "; likely cause: typographic quotation marks (“)",
    "run --limit 8\u00a0GiB ls": "run: --limit 8\u00a0GiB: a size is written in plain ASCII; write, for example, 8GiB, 40% or 0.4"
                                 "; likely cause: a non-breaking blank (U+00A0)",
    "hlep": "unknown verb \"hlep\"; the nearest is help",
    "help run extra": "help: unexpected argument \"extra\" (`ration help help`)",
    "set lab --limit none": "set: --limit none: it is neither a size nor `default`; write, for example, 8GiB or 40%; `default` takes a change back",
    "check a.jsonl --max-peek=3GiB": "check: --max-peek is not an option; the nearest is --max-peak",
    "convert a.jsonl": "convert: --to is required",
    "doctor missing.jsonl": "doctor: unexpected argument \"missing.jsonl\" (`ration help doctor`); write a command after --, and see `ration report` for a log",
    "env --files --check x": "env: --files cannot be combined with --check",
    "set lab 1GiB": 'set: unexpected argument "1GiB" (`ration help set`); to set a limit: ration set GROUP|PID --limit SIZE',
    "set --group lab --limit 1GiB": "set: --group is not an option; ours is its name alone: ration set GROUP --limit SIZE",
    "ps -a": "ps: -a is not an option; ours is --all",
    "top -n 1": "top: -n is not an option; ours is ration ps",
    "html a": 'unknown verb "html"; ours is ration report LOG -o run.html',
    "report a --growth": "report: --growth is not an option; ours is ration check LOG --no-growth; ration report LOG shows it too",
    "report a --top 5": "report: --top is not an option; ours is ration report LOG --json for all; the report itself names the largest",
    "report a --format json": "report: --format is not an option; ours is --json",
    "convert a --format csv": "convert: --format is not an option; ours is --to",
    "check a --fail-on-leak": "check: --fail-on-leak is not an option; ours is --no-leaks",
    "ps -w": "ps: -w is not an option; ours is --watch",
    "top -d 5": "top: -d is not an option; ours is --interval",
    "run -m 4GiB ls": "run: -m is not an option; ours is --limit",
    "run --find-min ls": "run: --find-min is not an option; ours is ration find-min -- COMMAND",
    "kill 7": 'unknown verb "kill"; ours is kill PID, or the key x in ration top',
    "leaks a": 'unknown verb "leaks"; ours is ration report LOG --leaks',
    "doctor --pid 1 --coverage": "doctor: --coverage, --pid, and a command after -- cannot be combined",
    "diff a": "diff: it compares two logs, or several: A... -- B...",
    "diff a b c": "diff: it compares two logs, or several: A... -- B...",
    "diff a --": "diff: no log after --",
    "env --wait=abc": "env: --wait=abc: it must be a number of seconds, or have a unit, ms s m h; write, for example, 30 or 5m",
    "find-min --toleranse 3 ls": "find-min: --toleranse is not an option; the nearest is --tolerance",
    "find-min --everything ls": "find-min: --everything is not an option (`ration help find-min` lists them)",
    "find-min --wait ls": "find-min: --wait is an option of `ration run` alone",
    "find-faults --wait=3s ls": "find-faults: --wait is an option of `ration run` alone",
    "find-faults -q ls": "find-faults: -q is an option of `ration run` alone",
    "find-min --limit 1g ls": "find-min: --limit cannot be given: each run has its own",
    "find-min --mode fast ls": "find-min: --mode fast: it must be one of pool, async, direct",
    "run --lmit 3GiB ls": "run: --lmit is not an option; the nearest is --limit",
    "run -limit 3GiB ls": "run: -limit is not an option; the nearest is --limit",
    "run --lim 3GiB ls": "run: --lim is not an option; the nearest is --limit",
    "run --wait=abc ls": "run: --wait=abc: it must be a number of seconds, or have a unit, ms s m h; write, for example, 30 or 5m",
    "run --limit 0:4GiB ls": "run: --limit 0:4GiB: a device and its size are joined by =; likely meant: 0=4GiB",
    "run --log-size 200000 ls": "run: --log-size 200000: that is 200000 bytes, below the smallest size, 1MiB",
    "run --log-size 5 ls": "run: --log-size 5: that is 5 bytes, below the smallest size, 1MiB; likely meant: 5MiB or 5GiB",
    "run --limit 4x ls": "run: --limit 4x: \"x\" is not a unit; the units are B, k m g t, Ki Mi Gi Ti, KiB MiB GiB TiB, KB MB GB TB and %",
    "run --sim 8GiB --reserve 20GiB ls": "run: --reserve 20GiB: it leaves no memory on device 0, which has 8.00GiB",
    "run --fail nth ls": "run: --fail nth: nth needs a number from 1 on; write, for example, nth=3",
    "run --summary - ls": "run: --summary -: a summary goes to a file, and stdout is the program's; write, for example, run.json, or json for stderr",
    "run --summary /nosuch/s.json ls": "run: --summary /nosuch/s.json: cannot write /nosuch/s.json: there is no folder /nosuch",
    "run -Z ls": "run: -Z is not an option (`ration help run` lists them)",
    "run --everything ls": "run: --everything is not an option (`ration help run` lists them)",
    "run --sim nonsense ls": f"run: --sim nonsense: it does not begin with a number; {SIMULATED}",
    "run --sim 0x8GiB ls": f"run: --sim 0x8GiB: there must be at least 1 device; {SIMULATED}",
    "run --sim 8GiB, ls": "run: --sim 8GiB,: it is not a list of devices; likely meant: 8GiB",
    "run --sim=100 ls": "run: --sim 100: a device of 100 bytes is too small; the smallest has 1MiB; likely meant: 100GiB or 100MiB",
    "run --sim 999x8GiB ls": f"run: --sim 999x8GiB: a simulated machine has at most 16 devices; {SIMULATED}",
    "run --sim 100TiB ls": f"run: --sim 100TiB: a simulated machine has at most 16TiB, all devices together; {SIMULATED}",
    "env --sim nonsense": f"env: --sim nonsense: it does not begin with a number; {SIMULATED}",
    "find-min --sim 50% ls": f"find-min: --sim 50%: a percentage has no meaning here: a simulated device needs a size in bytes; {SIMULATED}",
    "find-faults --sim 2*8GiB ls": "find-faults: --sim 2*8GiB: it is not a list of devices; likely meant: 2x8GiB",
}
# Lines of which the command is missing, with their status: that of the shell.
COMMANDS = {
    "find-min missing": ("find-min: missing: not found in PATH", 127),
    "find-faults ./missing": ("find-faults: ./missing: No such file or directory", 127),
    "run –limit 8GiB ls": ("run: –limit: not found in PATH; likely cause: an en dash (–) for a minus", 127),
    "run missing": ("run: missing: not found in PATH", 127),
    "run --log /bin/true missing": ("run: missing: not found in PATH; --log took /bin/true", 127),
}
DESCRIBED = json.loads(subprocess.run([BUILD / "bin/ration", "--describe"], capture_output=True, check=True).stdout)
VERBS = {verb["name"]: verb for verb in DESCRIBED["verbs"]}
# Arguments with which a verb could be used, before and after its options.
ARGUMENTS = {"run": "-- true", "find-min": "-- true", "find-faults": "-- true", "set": "lab", "report": "a", "check": "a",
             "convert": "a --to csv", "replay": "a", "diff": "a b", "cdi": "8GiB"}


def ration(*words):
    return subprocess.run([BUILD / "bin/ration", *words], env=command_environment(), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=HANG, check=False)


def said(line, sentence, status=None):
    def case(_):
        done = ration(*line.split(" "))
        expect("stderr", done.stderr, f"ration: {sentence}\n")
        expect("stdout and status", (done.stdout, done.returncode), ("", status or (125 if line.startswith("run ") else 2)))
    return case


def mistakes(verb):
    """(words after the verb, what the line says behind the verb)"""
    arguments = ARGUMENTS.get(verb, "").split()
    yield ["--nonsense", *arguments], f"--nonsense is not an option (`ration help {verb}` lists them)"
    yield ["--nonsense=3", *arguments], f"--nonsense is not an option (`ration help {verb}` lists them)"
    yield ["--help=x", *arguments], "--help: takes no value"
    for option in VERBS[verb]["options"]:
        name = option["names"][-1]
        if name == "--help":
            continue
        if option["placeholder"] is None:
            yield [f"{name}=3", *arguments], f"{name}: takes no value"
        elif not option["value_is_optional"]:
            line = [name] if arguments[:1] == ["--"] else [*arguments, name]
            yield line, f"{name} needs a value"
    if not VERBS[verb]["command_begins"] and not any(each["repeats"] for each in VERBS[verb]["arguments"]):
        more = "; to set a limit: ration set GROUP|PID --limit SIZE" if verb == "set" else ""
        yield [*arguments, "more"], f'unexpected argument "more" (`ration help {verb}`)' + more
    for argument in VERBS[verb]["arguments"]:
        if argument["required"]:
            yield [], f"{argument['name']} is required"
            break


def each_mistake(verb):
    def case(_):
        count = 0
        for words, sentence in mistakes(verb):
            done = ration(verb, *words)
            expect(f"{verb} {words}", (done.stdout, done.stderr, done.returncode),
                   ("", f"ration: {verb}: {sentence}\n", 125 if verb == "run" else 2))
            count += 1
        expect_that("several kinds of mistakes", count >= 4)
    return case


def taken(_):
    """`ration env` takes every option of `ration run`; blanks around the parts of a value are no part of it."""
    run = {name for option in VERBS["run"]["options"] for name in option["names"]}
    expect("options", run - {name for option in VERBS["env"]["options"] for name in option["names"]}, set())
    for words in (["env", "--wait", "-q", "--log", "a-%p", "--force", "--summary", "x.json", "--group-tree=4GiB", "ls"],
                  ["env", "--wait=5"], ["env", "--wait", "1.5", "ls"], ["env", "--wait", "500ms", "ls"],
                  ["env", "--limit", "0=4GiB, 1=2GiB"], ["env", "--sim", "8GiB, 2X4GiB"], ["help", "help"]):
        done = ration(*words)
        expect(f"{words}", (done.stderr, done.returncode), ("", 0))
    done = ration("run", "--sim", "8GiB", "--group-limit", "50%", "--", BUILD / "tests/preload/programs/linked_lazy")
    expect_that(done.stderr, "--group-limit 50%: no group is given (--group)" in done.stderr)


def later(_):
    """Of an option that is given twice the last holds, of any verb; a value that can be nothing else needs no sign."""
    for line, key, value, said in (
            ("--limit 1GiB --limit 2GiB", "limit", "2GiB", "ration: env: --limit=1GiB is replaced by the later --limit=2GiB\n"),
            ("--limit 2GiB --limit 2GiB", "limit", "2GiB", ""), ("--wait 5s --limit 50%", "limit", "50%", ""),
            ("--group-tree 50% --limit 3GiB", "limit", "3GiB", "")):
        done = ration("env", "--json", *line.split(), "ls")
        expect(f"{line}: stderr", done.stderr, said)
        rows = {row["key"]: row["value"] for row in json.loads(done.stdout)["settings"]}
        expect(line, rows[key], value)
    for line in ("set lab --limit {}", "check no.jsonl --max-peak {}", "replay no.jsonl --limit {}", "diff a b --fail-above {}"):
        option = line.split()[-2]
        said = ration(*(line.format("1g") + f" {option}=2g").split()).stderr.splitlines()[0]
        expect(line, said, f"ration: {line.split()[0]}: {option}=1g is replaced by the later {option}=2g")


def hints(_):
    """On a terminal what helps is a line of its own, and colours tell both apart, where the terminal has any."""
    plain = ["ration: ps: --jsn is not an option", "ration: hint: the nearest is --json"]
    coloured = ["\033[1;31mration:\033[m ps: --jsn is not an option", "ration: \033[1;36mhint:\033[m the nearest is --json"]
    for settings, lines in (({"TERM": "xterm"}, coloured), ({"TERM": "dumb"}, plain), ({"TERM": "xterm", "NO_COLOR": "1"}, plain)):
        parent, child = pty.openpty()
        subprocess.run([BUILD / "bin/ration", "ps", "--jsn"], env={**command_environment(), **settings}, stdin=subprocess.DEVNULL,
                       stderr=child, check=False)
        expect(f"lines, {settings}", os.read(parent, 4096).decode().splitlines(), lines)


def version(_):
    expect("-V", ration("-V").stdout, ration("--version").stdout)


def values(_):
    """An option with a wrong value is a wrong line; a variable is not."""
    for verb in ("run", "env", "find-min", "find-faults"):
        for option in ("--sim 2x", "--group x/y", "--mode fast", "--group-tree=x"):
            done = ration(verb, *option.split(), "--", "true")
            expect_that(done.stderr, done.stderr.startswith(f"ration: {verb}: {option}: ") and done.stderr.count("\n") == 1)
            expect("status", done.returncode, 125 if verb == "run" else 2)
    for verb in ("env", "find-min", "find-faults"):
        done = subprocess.run([BUILD / "bin/ration", verb, "--", "true"], env=command_environment() | {"RATION_MODE": "fast"},
                              capture_output=True, text=True, timeout=HANG, check=False)
        expect_that(done.stderr, done.stderr.startswith(f"ration: {verb}: RATION_MODE=fast: it must be one of"))
        expect("status", done.returncode, 125)
        expect("lines", done.stderr.count("\n"), 1)


main({line: said(line, sentence) for line, sentence in LINES.items()}
     | {line: said(line, *sentence_and_status) for line, sentence_and_status in COMMANDS.items()}
     | {f"mistakes of {verb}": each_mistake(verb) for verb in VERBS} | {"version": version, "later": later, "hints": hints, "taken": taken, "values of variables": values})
