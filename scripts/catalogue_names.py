#!/usr/bin/env python3
"""The names of the driver's functions that the catalogue knows.

catalogue_names.py FILE    writes their hashes (shim/base/name_hash.h), one a line, ascending
"""
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATALOGUE, INTEROP = "shim/cuda_memory_api.json", "shim/interop_exports.txt"


def known_exports():
    catalogue = json.loads((ROOT / CATALOGUE).read_text(encoding="utf-8"))
    interop = (ROOT / INTEROP).read_text(encoding="ascii").split("\n")
    return {entry["symbol"] for entry in catalogue["exports"]} | {name for name in interop if name.startswith("cu")}


def known_names():
    """The exports, and what cuGetProcAddress is asked for."""
    catalogue = json.loads((ROOT / CATALOGUE).read_text(encoding="utf-8"))
    return known_exports() | {row["name"] for row in catalogue["get_proc_address"]}


def name_hash(name):
    value = 2166136261
    for letter in name.encode("ascii"):
        value = (value ^ letter) * 16777619 % 2**32
    return value


def main():
    if len(sys.argv) != 2:
        print(__doc__)
        return 2
    hashes = sorted(map(name_hash, known_names()))
    pathlib.Path(sys.argv[1]).write_text("".join(f"{value}U,\n" for value in hashes), encoding="ascii")
    if len(set(hashes)) != len(hashes) or 0 in hashes:
        print("catalogue_names.py: two names have the same hash, or one has none", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
