#!/usr/bin/env python3
"""The help of the command and of each verb: no line is wider than 80 columns, and every option and example has its words."""
import itertools
import re
import subprocess

from described import OF_OPTIONS, OF_VERBS, options, part_of_help, printed, verbs
from harness import BUILD, clean_environment, expect, expect_that, main

WIDTH = 80


def paragraphs(text):
    return [part.splitlines() for part in text.split("\n\n")]


def narrow(*verb):
    def case(_):
        spellings = [(*verb, "--help"), (*verb, "-h"), ("help", *verb)]
        text = printed(*spellings[0])
        for words in spellings[1:]:
            expect(f"ration {' '.join(words)}", printed(*words), text)
        text += printed(*verb, "--help-all")
        lines = text.splitlines()
        expect("lines that are too wide", [line for line in lines if len(line) > WIDTH], [])
        expect("lines that end in a blank", [line for line in lines if line != line.rstrip()], [])
        expect_that("its commonest use comes first", not verb or any(line.startswith(f"Example: ration {verb[0]}") for line in lines[:5]))
        expect_that("two blank lines in a row", "\n\n\n" not in text and text.endswith("\n") and not text.endswith("\n\n"))
    return case


def no_early_break(*verb):
    """A line is broken only where the next word would not have fitted, so that none is shorter than it need be."""
    def case(_):
        for part in paragraphs(printed(*verb, "--help-all")):
            for line, after in itertools.pairwise(part):
                if line[0] != " " and after[0] != " " and not line.startswith(("Usage:", "Example:")) and not line.endswith(":") and not after.startswith(("Usage:", "Example:")):
                    word = re.match(r"\(?`[^`]*`\S*|\S+", after).group()
                    expect_that(f"{word!r} fits behind {line!r}", len(line) + 1 + len(word) > WIDTH)
    return case


def texts(*verb):
    """(term, its text) of each entry of a part: the text is behind two blanks, or below."""
    def of(part):
        entries = []
        for line in part:
            if re.match(r"  \S", line):
                term, _, text = line.strip().partition("  ")
                entries.append([term, text.strip(), len(line) - len(text.lstrip()) if text else None])
            else:
                indent = len(line) - len(line.lstrip())
                expect(f"the column of {line!r}", entries[-1][2] or indent, indent)
                entries[-1][1:] = [f"{entries[-1][1]} {line.strip()}".strip(), indent]
        return entries

    def case(_):
        text = printed(*verb, "--help-all")
        parts = {heading: of(part_of_help(text, heading)) for heading in (*OF_OPTIONS, *OF_VERBS, "Positionals")}
        for found in parts.values():
            expect("terms without a text", [term for term, said, _ in found if not said], [])
            expect_that("one column of texts", len({column for *_, column in found}) <= 1)
        expect("options", sum(len(parts[heading]) for heading in OF_OPTIONS),
               len({name for name in options(*verb) if name.startswith("--")}))
        examples = of(part_of_help(text, "Examples"))
        expect_that("examples", examples and all("ration" in term for term, *_ in examples))
        expect_that("one column of what examples show", len({column for *_, column in examples if column}) <= 1)
    return case


def columns(_):
    """The text is as wide as COLUMNS says, where that is set."""
    for asked in (60, 120):
        environment = clean_environment() | {"COLUMNS": str(asked)}
        done = subprocess.run([BUILD / "bin/ration", "check", "--help"], env=environment, capture_output=True, text=True, check=True)
        expect_that(f"COLUMNS={asked}: {done.stdout}", asked - 20 < max(len(line) for line in done.stdout.splitlines() if not line.startswith("  ration")) <= asked)


def one_screen(_):
    """The help of `ration run` has headings and the options that most runs need; --help-all has the others."""
    short, whole = printed("run", "--help"), printed("run", "--help-all")
    expect_that(short, len(short.splitlines()) <= 50 and "`ration run --help-all` has all options." in short)
    for heading in ("Limits", "Groups", "Logs", "Tests", "Options", "Examples"):
        expect_that(heading, part_of_help(short, heading) and part_of_help(whole, heading))
    expect_that("all options", "--guarantee" in whole and "--guarantee" not in short)


pages = [(), *((verb,) for verb in verbs())]
print(f"covered: {len(pages) - 1} of {len(verbs())}")
main({"COLUMNS": columns, "one screen": one_screen}
     | {" ".join(["width of ration", *verb]): narrow(*verb) for verb in pages}
     | {" ".join(["paragraphs of ration", *verb]): no_early_break(*verb) for verb in pages}
     | {" ".join(["words of ration", *verb]): texts(*verb) for verb in pages})
