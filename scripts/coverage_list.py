"""Reads what Ration does about each driver function from shim/coverage.txt, shim/hook_table.inc and the catalogue.

The catalogue (shim/cuda_memory_api.json) says which exports concern memory: all but those with PASS or NONE.
"""
import json
import pathlib
import re
import sys
from dataclasses import dataclass, field

sys.dont_write_bytecode = True  # the source tree is only read
from paragraphs import read_paragraphs  # noqa: E402
from tables import rows  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATALOGUE, HOOKS, STATEMENTS = "shim/cuda_memory_api.json", "shim/hook_table.inc", "shim/coverage.txt"
NOTHING_TO_DO = ("PASS", "NONE")
STANDINGS = ("hooked", "passed", "gap")


@dataclass
class Statement:
    """A paragraph of shim/coverage.txt."""
    line: int
    standing: str
    names: list
    sentence: str = ""
    tests: list = field(default_factory=list)


@dataclass
class Row:
    """An export and its statement."""
    export: str
    since: int  # major * 1000 + minor * 10; 0: unknown
    action: str
    family: str  # of the hook; "" if it is not hooked
    statement: Statement

    @property
    def asked(self):
        """Whether the catalogue requires a statement. Other exports are in the list only because they are hooked."""
        return self.action not in NOTHING_TO_DO

    @property
    def covered(self):
        return self.statement.standing != "gap"


def read_statements(text):
    """Returns the statements and the problems of their form."""
    paragraphs, problems = read_paragraphs(text, STATEMENTS, ("tests:",))
    statements = []
    for paragraph in paragraphs:
        standing, *names = paragraph.words
        if standing not in STANDINGS or not names:
            problems.append(f"{STATEMENTS}:{paragraph.line}: must begin with one of {', '.join(STANDINGS)} and name a function")
        tests = [test for _, _, text in paragraph.values for test in text.split()]
        statements.append(Statement(paragraph.line, standing, names, paragraph.sentence, tests))
    return statements, problems


def exports_of(name, catalogue):
    """`base*` is every export of that base name, in all versions and stream flavours; any other name is one export."""
    if name.endswith("*"):
        return [export for export, entry in catalogue.items() if entry["base"] == name[:-1]
                and (entry["action"] not in NOTHING_TO_DO)]
    return [name] if name in catalogue else []


def is_whole_process(test):
    """Only such a test reaches the hook, and can be run with the hook left out (tests/preload/left_out)."""
    return test.startswith("preload.")


def coverage(catalogue, hooks, statements):
    """Returns the rows, in the catalogue's order, and the problems. `hooks`: symbol -> (family, since)."""
    said, problems = {}, []
    for statement in statements:
        where = f"{STATEMENTS}:{statement.line}"
        if not re.search(r"[a-z]\S* \S+ \S+", statement.sentence) or re.search(r"[^ -~]|[\"\\]", statement.sentence):
            problems.append(f"{where}: {' '.join(statement.names)} needs a sentence of plain ASCII")
        if statement.standing == "hooked" and not (statement.tests and all(map(is_whole_process, statement.tests))):
            problems.append(f"{where}: {' '.join(statement.names)} is hooked, but no whole-process test is named")
        for name in statement.names:
            if not exports_of(name, catalogue):
                problems.append(f"{where}: {name} is not in the catalogue")
            for export in exports_of(name, catalogue):
                if export in said:
                    problems.append(f"{where}: {export} has a statement at line {said[export].line} already")
                said[export] = statement
                if (export in hooks) != (statement.standing == "hooked"):
                    problems.append(f"{where}: {export} is {'' if export in hooks else 'not '}hooked, but marked "
                                    f"{statement.standing}")
    found = []
    for export, entry in catalogue.items():
        if export in said:
            family, since = hooks.get(export, ("", 0))
            found.append(Row(export, entry["cuda_version"] or since, entry["action"], family, said[export]))
            if entry["action"] in NOTHING_TO_DO and export not in hooks:
                problems.append(f"{STATEMENTS}:{said[export].line}: {export} is {entry['action']} in the catalogue and not "
                                "hooked: it needs no statement")
        elif export in hooks or entry["action"] not in NOTHING_TO_DO:
            problems.append(f"{STATEMENTS}: no statement about {export} ({entry['action']}"
                            f"{', hooked' if export in hooks else ''})")
    problems += [f"{HOOKS}: {hook} is not in the catalogue" for hook in hooks if hook not in catalogue]
    return found, problems


def read_tree():
    """Returns the rows, the number of exports that need a statement, and the problems."""
    catalogue = {entry["symbol"]: entry for entry in json.loads((ROOT / CATALOGUE).read_text())["exports"]}
    hooks = {symbol: (family, int(since)) for family, (symbol, _, _, since, *_) in rows(HOOKS, "RATION_HOOK")}
    statements, problems = read_statements((ROOT / STATEMENTS).read_text(encoding="ascii"))
    found, more = coverage(catalogue, hooks, statements)
    asked = sum(1 for entry in catalogue.values() if entry["action"] not in NOTHING_TO_DO)
    return found, asked, problems + more
