#!/usr/bin/env python3
"""Puts the pages of `ration report -o` and `ration diff -o` together: assemble.py OUT DYGRAPHS

Writes OUT, an include file of two C++ strings for each page: what precedes the document with the figures, and what follows.
"""
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
# Of each page, in the order in which they need each other; the last one starts it.
PAGES = {"report": ("format", "theme", "table", "model", "colours", "summary", "caller_stack", "time_chart", "pool_map", "flame", "callers", "report"),
         "difference": ("format", "theme", "table", "difference")}
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


def page(name, dygraphs):
    web = {path.name: path.read_text() for path in (FOLDER / "web").iterdir()}
    own = "\n".join(web[f"{script_name}.js"] for script_name in PAGES[name])
    notices = (FOLDER / "third_party_notices.txt").read_text()
    parts = {"STYLE": web["style.css"], "DYGRAPHS": script(dygraphs.read_text()),
             "SCRIPT": script(f"'use strict';\n(() => {{\n{own}\n}})();"),
             "NOTICES": notices.replace("&", "&amp;").replace("<", "&lt;")}
    text = web[f"{name}.html"].replace("@HEAD@", web["head.html"])
    return re.sub(r"@(STYLE|DYGRAPHS|SCRIPT|NOTICES)@", lambda match: parts[match.group(1)], text).split("@DATA@")


def main(out, dygraphs):
    parts = [part for name in PAGES for part in page(name, pathlib.Path(dygraphs))]
    pathlib.Path(out).write_text("".join(f"{literal(part)},\n" for part in parts))


main(*sys.argv[1:])
