#!/usr/bin/env python3
"""The manual pages: one for each verb, every option and setting in them, and no formatter that complains."""
import datetime
import pathlib
import re
import shutil
import subprocess
import sys

from described import SHARE, options, printed, verbs
from harness import Failure, expect, expect_that, main

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
import tables  # noqa: E402

FOLDER = SHARE / "man/man1"
SECTIONS = ("NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "EXIT STATUS", "SEE ALSO")
MORE = ("SETTINGS", "ENVIRONMENT", "FILES")  # of ration.1


def file_of(*verb):
    return FOLDER / ("-".join(["ration", *verb]) + ".1")


def terms(path):
    """What the entries of a page are about, without fonts."""
    text = path.read_text(encoding="ascii")
    return [re.sub(r"\\f[BIPR]|\\(?=-)", "", term) for term in re.findall(r"^\.TP\n(.*)$", text, re.M)]


def one_for_each(_):
    expect("pages", sorted(path.name for path in FOLDER.iterdir()), sorted(file_of(*verb).name for verb in [(), *zip(verbs())]))


def page(*verb):
    def case(_):
        path = file_of(*verb)
        found = re.findall(r"^\.SH (.*)$", path.read_text(encoding="ascii"), re.M)
        wanted = SECTIONS if verb else SECTIONS + MORE
        expect("missing sections", [section for section in wanted if section not in found], [])
        shown = subprocess.run(["groff", "-man", "-Tutf8", "-wmac", path], capture_output=True, text=True, check=False)
        expect("groff", (shown.returncode, shown.stderr), (0, ""))
        expect_that("what is shown", "ration" in shown.stdout)
        if shutil.which("mandoc"):
            said = subprocess.run(["mandoc", "-Tlint", path], capture_output=True, text=True, check=False)
            expect("mandoc -Tlint", said.stdout + said.stderr, "")
    return case


def entry(name, *verb):
    def case(_):
        expect_that(f"{name} begins no entry of {file_of(*verb).name}",
                    any(name in re.split(r"[ ,[]+", term) for term in terms(file_of(*verb)) if term[0] == name[0]))
    return case


def lines_of(section, path):
    """The lines of a section of a page."""
    found = re.search(rf"^\.SH {section}\n(.*?)(?=^\.SH |\Z)", path.read_text(encoding="ascii"), re.M | re.S)
    return found.group(1).splitlines() if found else []


def described(*verb):
    """Each option of the help is an entry of OPTIONS, once, with a description; and EXAMPLES has commands of the verb."""
    def case(_):
        entries = re.split(r"^\.TP\n", "\n".join(lines_of("OPTIONS", file_of(*verb))), flags=re.M)[1:]
        named = []
        for each in entries:
            term, *text = each.strip().splitlines()
            names = re.findall(r"(?<!\S)--?[\w-]+", re.sub(r"\\f[BIPR]|\\(?=-)", "", term).replace("[=", " "))
            expect_that(f"the description of {term}", names and len(" ".join(text).split()) >= 2)
            named += names
        expect("options", sorted(named), sorted(options(*verb)))
        commands = [line for line in lines_of("EXAMPLES", file_of(*verb)) if re.match(r"\\fB", line)]
        name = "\\-".join(verb[0].split("-")) if verb else ""
        expect_that(f"examples: {commands}", any(f"ration {name}" in line for line in commands))
    return case


def each_setting(_):
    found = terms(file_of())
    for option in tables.options():
        expect_that(option["variable"], any(term.split(",")[0] == option["variable"] for term in found))


def the_same_again(folder):
    """A page depends on nothing but the sources: no day, no folder."""
    script = ROOT / "shim/cli/manual/write_manual.py"
    description = pathlib.Path(folder) / "description.json"
    description.write_text(printed("--describe"), encoding="utf-8")
    share = pathlib.Path(folder) / "share"
    (share / "man/man1").mkdir(parents=True)
    (share / "man/man1/ration-gone.1").write_text("of a verb that is gone")
    version = printed("--version").split()[1]
    command = [sys.executable, script, description, script.parent / "ration.1.in", share, "/elsewhere"]
    subprocess.run([*command, version], check=True)
    built = {path.relative_to(SHARE): path.read_text() for path in SHARE.rglob("*")
             if path.is_file() and path.relative_to(SHARE).parts[0] != "doc"}
    again = {path.relative_to(share): path.read_text() for path in share.rglob("*") if path.is_file()}
    expect("files", sorted(again), sorted(built))
    different = [str(name) for name, text in again.items() if text != built[name]]
    expect("files that differ for another system folder", [name for name in different if name != "man/man1/ration.1"], [])
    dates = {re.search(r"^\.TH \S+ 1 (\S+)", text, re.M).group(1) for name, text in again.items() if name.parts[0] == "man"}
    expect("dates", len(dates), 1)
    datetime.date.fromisoformat(dates.pop())
    refused = subprocess.run([*command, "9.9"], capture_output=True, text=True, check=False)
    expect_that(f"another version: {refused.stderr!r}", refused.returncode != 0 and "9.9" in refused.stderr)


if not shutil.which("groff"):
    raise Failure("groff is not installed: scripts/setup.sh does that")
if not shutil.which("mandoc"):
    print("skipped: mandoc -Tlint, because mandoc is not installed")
pages = [(), *((verb,) for verb in verbs())]
main({"a page for each verb": one_for_each, "each setting": each_setting, "the same again": the_same_again}
     | {" ".join(["page of ration", *verb]): page(*verb) for verb in pages}
     | {" ".join(["words of ration", *verb]): described(*verb) for verb in pages}
     | {" ".join(["ration", *verb, name]): entry(name, *verb) for verb in pages for name in options(*verb)}
     | {f"verb {verb}": entry(verb) for verb in verbs()})
