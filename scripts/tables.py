#!/usr/bin/env python3
"""Generates documentation and the settings schema from the lists that the code is built from.

tables.py           rewrites the tables in the documents and config/schema.json in place
tables.py --check   fails if any of them is out of date

A table stands between two marker lines, `<!-- table: NAME ... -->` and `<!-- end of table -->`.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = ROOT / "config/schema.json"
BLOCK = re.compile(r"(<!-- table: (\w+) .*?-->\n).*?(<!-- end of table -->)", re.S)
FIELD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\((?:[^()])*\)|[^,()"]+(?:<[^>]*>)?)\s*(?:,|$)')


def rows(path, macro):
    """The arguments of each `macro(...)` row, and its family: the first word of the comment above it."""
    text, family = (ROOT / path).read_text(), ""
    comment = r"^/\* (\w+)(?:(?:,[^:*]*)?:(?:[^*]|\*(?!/))*)? ?\*/$"  # FAMILY, or FAMILY[, more]: what it is, over some lines
    pattern = re.compile(comment + "|^" + macro + r"\(((?:[^()\"]|\"(?:[^\"\\]|\\.)*\"|\([^()]*\))*)\)", re.M)
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


OPTION = ("key", "variable", "reader", "values", "default", "flag", "effect", "scope", "text")


def options():
    """Each public setting, as a dictionary."""
    for _, fields in rows("config/options.inc", "RATION_OPTION"):
        option = dict(zip(OPTION, fields, strict=True))
        if option["scope"] != "kInternal":
            yield option


def settings_table():
    lines = ["| variable | flag | values | default | what it does |", "|---|---|---|---|---|"]
    for o in options():
        alone = {"kVariable": " ‡", "kSystemFile": " §"}.get(o["scope"], "")
        lines.append(f"| `{o['variable']}`{alone} | {code(o['flag'])} | {cell(o['values'])} | {cell(o['default'])} | {cell(o['text'])} |")
    return lines


# What config/values/size_syntax.h reads: bytes, and numbers with units (of which a b after a capital is none).
DECIMAL = r"([0-9]+(\.[0-9]+)?|\.[0-9]+)"
BYTES_TEXT = f"0*[1-9][0-9]{{6,19}}( ?B)?|{DECIMAL} ?([kmgtKMGT]([iI]?B|[iI])?|[kmgt][iI]?b)"
SIZE = {"anyOf": [
    {"type": "integer", "minimum": 1 << 20},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    {"type": "string", "pattern": f"^({BYTES_TEXT}|0*(\\.[0-9]*[1-9][0-9]*|1\\.0+)"
                                  r"|0*(100(\.0+)?|[0-9]{1,2}(\.[0-9]+)?|\.[0-9]+) ?%)$"}]}
DEVICES = {"type": "object", "minProperties": 1, "additionalProperties": {"$ref": "#/$defs/size"},
           "propertyNames": {"pattern": "^([0-9]+|([Gg][Pp][Uu]|[Mm][Ii][Gg])-[0-9A-Fa-f][0-9A-Fa-f-]*)$"}}
PROGRAM = {"type": "object", "minProperties": 1, "additionalProperties": False,
           "properties": {part: {"type": "string", "maxLength": 1024} for part in ("exe", "argv")}}
BYTES = {"anyOf": [{"type": "integer", "minimum": 1 << 20}, {"type": "string", "pattern": f"^({BYTES_TEXT})$"}]}
FAULT = "((nth|every|seed|above|after|library|probability)=[^,;]+)"
FAULT_RULES = f"^{FAULT}([,;]{FAULT})*$"
TEXTS = {"NAME": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
         "FOLDER": {"type": "string", "pattern": "^/"},
         "FILE": {"type": "string", "minLength": 1}, "RULES": {"type": "string", "pattern": FAULT_RULES},
         "BYTES": BYTES, "LEVEL:FILE": {"type": "string", "pattern": "^(off|warn|info|debug|trace):."},
         "DURATION": {"anyOf": [{"type": "number", "minimum": 0},
                                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(ms|[smh])?$"}]}}


def schema_of_values(values):
    """The column `values`: each word is a kind in capitals, or a literal value."""
    kinds, words = [], []
    for value in values.split():
        if value == "SIZE":
            kinds.append({"$ref": "#/$defs/size"})
        elif value == "DEVICE=SIZE,...":
            kinds.append({"$ref": "#/$defs/sizeOfEachDevice"})
        elif value in TEXTS:
            kinds.append(TEXTS[value])
        elif value in ("true", "false"):
            words += [value == "true", value]
        elif re.fullmatch(r"-?\d+", value):
            words += [int(value), value]
        else:
            words.append(value)
    if words:
        kinds.append({"enum": words})
    return kinds[0] if len(kinds) == 1 else {"anyOf": kinds}


def schema():
    keys = {o["key"]: {"description": f"{o['text']} (default: {o['default']})", **schema_of_values(o["values"])}
            for o in options() if o["scope"] != "kVariable"}
    locked = {"description": "of a system file: ceilings over everything",
              "type": "array", "items": {"enum": list(keys)}}
    rule = {"type": "object", "required": ["match"], "additionalProperties": False,
            "properties": {"match": {"$ref": "#/$defs/program"}, "locked": locked, **keys}}
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Settings of Ration",
        "type": "object", "additionalProperties": False,
        "properties": {
            "$schema": {"type": "string"}, **keys, "locked": locked,
            "rules": {"description": "settings of some programs only; a later rule goes before an earlier one",
                      "type": "array", "maxItems": 256, "items": rule}},
        "$defs": {"size": SIZE, "sizeOfEachDevice": DEVICES, "program": PROGRAM}}
    return json.dumps(document, indent=1) + "\n"


def in_rows(title, columns, cells):
    """`cells`: (row, column, name), in order. A line for each row; a cell lists its names."""
    table = {}
    for row, column, name in cells:
        table.setdefault(row, {}).setdefault(column, []).append(name)
    lines = [f"| {' | '.join((title, *columns))} |", "|---" * (len(columns) + 1) + "|"]
    return lines + [f"| {row} | {' | '.join(' '.join(names.get(column, [])) for column in columns)} |" for row, names in table.items()]


def hooks_table():
    hooks = [(family, "functions", f"`{fields[0]}`" + (" (required)" if fields[5] == "required" else ""))
             for family, fields in rows("shim/hook_table.inc", "RATION_HOOK")]
    return in_rows("family", ["functions"], hooks + [
        (family, "functions", f"`{fields[0]}`") for family, fields in rows("shim/hook_table.inc", "RATION_NVML_HOOK")])


def findings_table():
    return in_rows("about", ["trouble", "note", "ok"], [
        (family, severity[1:].lower(), f"`{name}`") for family, (name, severity, _, _) in rows("shim/cli/doctor/findings.inc", "RATION_FINDING")])


# name -> the document that holds the table, and its rows
TABLES = {"settings": (ROOT / "config/README.md", settings_table),
          "hooks": (ROOT / "shim/hooks/README.md", hooks_table),
          "findings": (ROOT / "shim/cli/README.md", findings_table)}


def filled(document):
    """The document's text with its tables up to date."""
    found = []

    def fill(match):
        found.append(match.group(2))
        rows_of = TABLES.get(match.group(2), (None, list))[1]
        return match.group(1) + "\n".join(rows_of()) + "\n" + match.group(3)

    text = BLOCK.sub(fill, document.read_text(encoding="utf-8"))
    wanted = [name for name, (place, _) in TABLES.items() if place == document]
    if found != wanted:
        sys.exit(f"tables: {document.relative_to(ROOT)} holds the tables {found}, expected {wanted}")
    return text


def main():
    generated = [(document, filled(document)) for document in dict.fromkeys(place for place, _ in TABLES.values())]
    generated.append((SCHEMA, schema()))
    outdated = [(path, text) for path, text in generated
                if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if sys.argv[1:] == ["--check"]:
        for path, _ in outdated:
            print(f"tables: {path.relative_to(ROOT)} is out of date: run scripts/tables.py")
        return 1 if outdated else 0
    for path, text in outdated:
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
