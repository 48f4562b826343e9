#!/usr/bin/env python3
"""Writes README's tables from config/options.inc and shim/hook_table.inc.

tables.py           rewrites them in place
tables.py --check   fails where README.md does not say what the lists say
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
BLOCK = re.compile(r"(<!-- table: (\w+) .*?-->\n).*?(<!-- end of table -->)", re.S)
FIELD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\((?:[^()])*\)|[^,()"]+(?:<[^>]*>)?)\s*(?:,|$)')


def rows(path, macro):
    """The arguments of each `macro(...)` row, with the family that a comment line above it begins with."""
    text, family = (ROOT / path).read_text(), ""
    pattern = re.compile(r"^/\* (\w+)(?: \*/|: .*\*/)$|^" + macro + r"\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*)\)", re.M)
    for match in pattern.finditer(re.sub(r"^//.*$", "", text, flags=re.M)):
        if match.group(1):
            family = match.group(1)
            continue
        fields = [field.strip().strip('"') for field in FIELD.findall(" ".join(match.group(2).split()))]
        yield family, fields


def cell(text):
    return text.replace("|", "\\|").replace("<", "&lt;")


def code(text):
    return f"`{cell(text)}`" if text else ""


def settings_table():
    lines = ["| variable | flag | values | default | what it does |", "|---|---|---|---|---|"]
    for _, (_, variable, _, values, default, flag, _, state, text) in rows("config/options.inc", "RATION_OPTION"):
        if state == "kInternal":
            continue
        later = "" if state == "kBuilt" else " †"
        lines.append(f"| `{variable}` | {code(flag)} | {cell(values)} | {cell(default)} | {cell(text)}{later} |")
    return lines


def hooks_table():
    lines = ["| family | function | asked for as | since CUDA | needed for a limit |", "|---|---|---|---|---|"]
    for family, (symbol, _, name, since, stream, need, _) in rows("shim/hook_table.inc", "RATION_HOOK"):
        version = f"{int(since) // 1000}.{int(since) % 1000 // 10}"
        asked = f"`{name}`" + (", per-thread stream" if stream == "per_thread" else "")
        lines.append(f"| {family} | `{symbol}` | {asked} | {version} | {'yes' if need == 'required' else 'no'} |")
    for family, (symbol, _) in rows("shim/hook_table.inc", "RATION_NVML_HOOK"):
        lines.append(f"| {family} | `{symbol}` | by name, of `libnvidia-ml.so.1` | | no |")
    return lines


TABLES = {"settings": settings_table, "hooks": hooks_table}


def main():
    text = README.read_text(encoding="utf-8")
    found = []

    def fill(match):
        found.append(match.group(2))
        lines = TABLES[match.group(2)]()
        return match.group(1) + "\n".join(lines) + "\n" + match.group(3)

    wanted = BLOCK.sub(fill, text)
    if sorted(found) != sorted(TABLES):
        print(f"tables: README.md has the tables {found}, not {sorted(TABLES)}")
        return 1
    if sys.argv[1:] == ["--check"]:
        if wanted != text:
            print("tables: README.md is behind config/options.inc or shim/hook_table.inc: run scripts/tables.py")
        return 1 if wanted != text else 0
    README.write_text(wanted, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
