"""differences.txt: what became of each test that failed on hardware. Format and verdicts: its head."""
import json
import pathlib
import re
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
FILE = HERE / "differences.txt"
VERDICTS = ("simcuda", "ration", "test", "incomparable")
CASE = "conformance: "  # before the name of a case of the conformance suite
LINE = re.compile(rf"((?:{CASE})?.+?): (\w+)(?:,\s*(.*))?")
BEFORE = re.compile(r"^before (\S+)$", re.MULTILINE)
NOW = re.compile(r'now "(.*)"$')


@dataclass
class Entry:
    name: str  # as in the results
    verdict: str
    reason: str

    @property
    def case(self):
        """The name of its conformance case today, None where it is none."""
        if not self.name.startswith(CASE):
            return None
        renamed = NOW.search(self.reason)
        return renamed.group(1) if renamed else self.name[len(CASE):]


def entries(text):
    lines = [line.strip() for line in BEFORE.sub("", text).splitlines() if line.strip() and not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    return [Entry(match[1], match[2], match[3] or "") if match else Entry(line, "", "") for line, match in zip(lines, found)]


def incomparable():
    """Conformance case -> why hardware does not run it."""
    return {entry.case: entry.reason for entry in entries(FILE.read_text(encoding="utf-8"))
            if entry.verdict == "incomparable" and entry.case}


def failed_names(folder):
    """What failed in any result file, each with the date of the last one."""
    files = sorted((json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json")), key=lambda file: file["date"])
    return {test["name"]: file["date"] for file in files for test in file["tests"] if test["status"] == "failed"}


def problem(entry, failed, cases, before):
    """What is wrong with a line, None if nothing."""
    if entry.verdict not in VERDICTS:
        return f"unknown verdict {entry.verdict!r}"
    if not entry.reason:
        return "no reason"
    if entry.name not in failed:
        return "stale: no result file has it as failed"
    if entry.verdict != "incomparable" and failed[entry.name] >= before:
        return f"failed again in the run of {failed[entry.name]}"
    if entry.case is not None and entry.case not in cases:
        return f"the conformance suite has no case {entry.case!r}"
    return None


def problems(text, failed, cases):
    """(name -> what is wrong with it, how many of `failed` have a line that is right)."""
    found = {name: "no verdict" for name in sorted(failed)}
    listed = entries(text)
    names = [entry.name for entry in listed]
    before = BEFORE.search(text)
    before = before[1] if before else ""
    for entry in listed:
        wrong = "it has several lines" if names.count(entry.name) > 1 else problem(entry, failed, cases, before)
        if wrong:
            found[entry.name] = wrong
        else:
            del found[entry.name]
    return found, len(failed.keys() - found.keys())
