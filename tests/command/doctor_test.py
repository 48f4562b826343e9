#!/usr/bin/env python3
"""`ration doctor --coverage` prints the coverage table of this source tree, as text and as JSON."""
import json
import pathlib
import subprocess

from harness import BUILD, HANG, clean_environment, expect, expect_that, main

RATION = BUILD / "bin/ration"
TREE = pathlib.Path(__file__).resolve().parents[2]
STANDINGS = {"hooked": "hooked (", "passed": "passed on", "gap": "GAP"}


def ration(*arguments, status=0, output=subprocess.PIPE):
    done = subprocess.run([RATION, *arguments], env=clean_environment(), stdin=subprocess.DEVNULL, stdout=output,
                          stderr=subprocess.PIPE, text=True, timeout=HANG, check=False)
    expect(f"status of {arguments}, stderr {done.stderr!r}", done.returncode, status)
    return done


def required():
    """The catalogue's exports that concern memory: the M of `covered: N of M`."""
    catalogue = json.loads((TREE / "shim/cuda_memory_api.json").read_text())
    return [entry for entry in catalogue["exports"] if entry["action"] not in ("PASS", "NONE")]


def hooks():
    """The symbols of the hook table."""
    lines = (TREE / "shim/hook_table.inc").read_text().splitlines()
    return {line[len("RATION_HOOK("):].split(",")[0] for line in lines if line.startswith("RATION_HOOK(")}


def document():
    done = ration("doctor", "--coverage", "--json")
    expect("stderr", done.stderr, "")
    return json.loads(done.stdout)


def as_json(_):
    shown, wanted = document(), required()
    expect("schema", shown["schema"], "ration.coverage/1")
    expect("exports", [row["export"] for row in shown["rows"]], [entry["symbol"] for entry in wanted])
    expect("actions", [row["action"] for row in shown["rows"]], [entry["action"] for entry in wanted])
    for row in shown["rows"]:
        expect(f"keys of {row['export']}", sorted(row),
               ["action", "export", "family", "handling", "sentence", "since", "tests"])
        expect_that(f"{row} says nothing", len(row["sentence"].split()) > 2)
    of_standing = {name: {row["export"] for row in shown["rows"] if row["handling"] == name} for name in STANDINGS}
    every = of_standing["hooked"] | {row["export"] for row in shown["also_hooked"]}
    expect("hooked", every, hooks())
    expect_that("a hook has a family and tests", all(row["family"] and row["tests"] for row in shown["rows"]
                                                     if row["handling"] == "hooked"))
    expect("of", shown["of"], len(wanted))
    expect("gaps", shown["gaps"], len(of_standing["gap"]))
    expect("covered", shown["covered"], len(wanted) - len(of_standing["gap"]))


def as_text(_):
    shown, done = document(), ration("doctor", "--coverage")
    expect("stderr", done.stderr, "")
    head, _, table = done.stdout.partition("\n\n")
    covered, gaps, *legend = head.splitlines()
    title, *lines = table.splitlines()
    expect_that(legend, all(any(f"{word}" in line for line in legend) for word in ("hooked:", "passed on:", "GAP:", "POOL", "WATCH")))
    first = [" GAP " in line for line in lines]
    expect("gaps come first", first, sorted(first, reverse=True))
    expect("titles", title.split()[:5], ["EXPORT", "SINCE", "ACTION", "RATION", "TESTS"])
    expect("first lines", (covered, gaps), (f"covered: {shown['covered']} of {shown['of']}", f"gaps: {shown['gaps']}"))
    rows = shown["rows"] + shown["also_hooked"]
    expect("lines", sorted(line.split()[0] for line in lines), sorted(row["export"] for row in rows))
    by_export = {line.split()[0]: line for line in lines}
    for row in rows:
        since = "-" if row["since"] is None else f"{row['since'] // 1000}.{row['since'] % 1000 // 10}"
        line = by_export[row["export"]]
        expect(f"since and action in {line!r}", line.split()[1:3], [since, row["action"]])
        for part in (STANDINGS[row["handling"]], row["sentence"], *row["tests"]):
            expect_that(f"{line!r} lacks {part!r}", part in line)


def usage_errors(_):
    for line in (["--coverage", "word"], ["--no-such-option"], ["--coverage", "--json", "--gaps"], ["--"], ["--pid"], ["--pid", "0"], ["--pid", "x"],
                 ["--pid", "1", "--coverage"], ["--pid", "1", "--", "ls"], ["log", "--", "ls"], ["--coverage", "--", "ls"]):
        done = ration("doctor", *line, status=2)
        expect(f"stdout of {line}", done.stdout, "")
        expect(f"lines on stderr of {line}: {done.stderr}", len(done.stderr.splitlines()), 1)
    expect("both", ration("doctor", "--coverage", "--", "ls", status=2).stderr,
           "ration: doctor: --coverage, --pid, and a command after -- cannot be combined\n")
    for flag in ("--coverage", "--json"):
        for value in ("3", "false"):
            expect(f"{flag}={value}", ration("doctor", "--coverage", f"{flag}={value}", status=2).stderr, f"ration: doctor: {flag}: takes no value\n")


def full_disk(_):
    for line in (["--coverage"], ["--coverage", "--json"]):
        with open("/dev/full", "w", encoding="ascii") as full:
            expect("stderr", ration("doctor", *line, status=125, output=full).stderr, "ration: cannot write to standard output\n")


def help_text(_):
    expect_that("ration --help names it", "\n  doctor " in ration("--help").stdout)
    text = ration("doctor", "--help").stdout
    actions = {row["action"] for rows in ("rows", "also_hooked") for row in document()[rows]}
    expect_that(text, all(part in text for part in ("--coverage", "--json", "Exit status:", "GAP", *(f"\n  {action} " for action in actions))))


def families(_):
    """The hook of a family is in the source file of that name, but for these."""
    elsewhere = {"device": ["legacy32"], "query": ["legacy32"], "reach": ["synchronous"]}
    shown = document()
    for row in shown["rows"] + shown["also_hooked"]:
        if row["handling"] == "hooked":
            files = [TREE / f"shim/hooks/{name}.cc" for name in [row["family"]] + elsewhere.get(row["family"], [])]
            expect_that(f"{row['export']} is in one of {files}", any(f" {row['export']}(" in file.read_text() for file in files))


main({"as JSON": as_json, "as text": as_text, "usage errors": usage_errors, "a full disk": full_disk,
      "help": help_text, "families": families})
