#!/usr/bin/env python3
"""Puts the page of `ration report -o` together: assemble.py OUT DYGRAPHS

Writes OUT, an include file of two C++ strings: the page up to the document with a log's figures, and the rest of it.
"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
# In the order in which they need each other.
SCRIPTS = ("format", "model", "colours", "summary", "time_chart", "pool_map", "flame", "callers", "main")
CHUNK = 8192  # of a string literal: compilers promise 65,536 bytes for all that stand side by side, and take more


def script(text):
    """JavaScript as it may stand in an element: nothing in it ends the element, or asks for a map of the source."""
    text = re.sub(r"^//[#@] sourceMappingURL=.*$", "", text, flags=re.M)
    return re.sub(r"<(?=/script|!--)", r"\\x3c", text, flags=re.I)


def literal(text):
    data = text.encode()
    lines = []
    for at in range(0, len(data), CHUNK):
        lines.append('"' + "".join(
            chr(byte) if 32 <= byte < 127 and chr(byte) not in '"\\?' else f"\\{byte:03o}" for byte in data[at:at + CHUNK]) + '"')
    return "\n".join(lines)


def page(dygraphs):
    web = {path.name: path.read_text() for path in (FOLDER / "web").iterdir()}
    own = "\n".join(web[f"{name}.js"] for name in SCRIPTS)
    notices = (FOLDER / "third_party_notices.txt").read_text()
    parts = {"STYLE": web["style.css"], "DYGRAPHS": script(dygraphs.read_text()),
             "SCRIPT": script(f"'use strict';\n(() => {{\n{own}\n}})();"),
             "NOTICES": notices.replace("&", "&amp;").replace("<", "&lt;")}
    text = re.sub(r"@(STYLE|DYGRAPHS|SCRIPT|NOTICES)@", lambda match: parts[match.group(1)], web["page.html"])
    return text.split("@DATA@")


def main(out, dygraphs):
    before, after = page(pathlib.Path(dygraphs))
    pathlib.Path(out).write_text(f"{literal(before)},\n{literal(after)},\n")


main(*sys.argv[1:])
