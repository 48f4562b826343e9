"""Reads the format of shim/coverage.txt and tests/failures.txt, and ctest's list of tests.

A paragraph is a line at the margin with indented lines below it: `+` continues the words of the first line, `key:` has a
value, all other lines are its sentence. `#` begins a comment.
"""
import json
import subprocess
from dataclasses import dataclass, field


@dataclass
class Paragraph:
    line: int
    words: list
    sentence: str = ""
    values: list = field(default_factory=list)  # (line, key, text)


def read_paragraphs(text, where, keys):
    """Returns the paragraphs and the problems of their form. A line that begins with one of `keys` is a value."""
    paragraphs, problems = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        first, _, rest = line.strip().partition(" ")
        if not line[0].isspace():
            paragraphs.append(Paragraph(number, line.split()))
        elif not paragraphs:
            problems.append(f"{where}:{number}: indented line without a paragraph")
        elif first in keys:
            paragraphs[-1].values.append((number, first, rest.strip()))
        elif first == "+":
            paragraphs[-1].words += rest.split()
        else:
            paragraphs[-1].sentence = f"{paragraphs[-1].sentence} {line.strip()}".strip()
    return paragraphs, problems


def listed_tests(ctest, build):
    """ctest's tests: name -> {command, labels, environment, folder}. `command` is empty if the program is not built."""
    command = [ctest, "--test-dir", build, "--show-only=json-v1"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True)
    known = {}
    for test in json.loads(listed.stdout)["tests"]:
        properties = {item["name"]: item["value"] for item in test.get("properties", [])}
        known[test["name"]] = {"command": test.get("command", []), "labels": properties.get("LABELS", []),
                               "environment": dict(pair.split("=", 1) for pair in properties.get("ENVIRONMENT", [])),
                               "folder": properties.get("WORKING_DIRECTORY")}
    return known


def quick_tests(ctest, build):
    """The tests with the label `quick`."""
    return {name: test for name, test in listed_tests(ctest, build).items() if "quick" in test["labels"]}
