#!/usr/bin/env python3
"""Writes an include file of C++ rows {"NAME", "TEXT"}, one for each NAME.txt: assemble.py OUT

NAME is a verb, or `ration`: TEXT ends its --help.
"""
import json
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent


def main(out):
    rows = [f"{{{json.dumps(path.stem)}, {json.dumps(path.read_text().removesuffix(chr(10)), ensure_ascii=False)}}},"
            for path in sorted(FOLDER.glob("*.txt"))]
    pathlib.Path(out).write_text("\n".join(rows) + "\n")


main(*sys.argv[1:])
