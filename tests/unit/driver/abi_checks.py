#!/usr/bin/env python3
"""Writes the checks of our own CUDA declarations against the toolkit's cuda.h, for abi_test.cc and abi_names_test.cc.

usage: abi_checks.py REPOSITORY OUTPUT_FOLDER
"""
import pathlib
import re
import sys

BLOCK = re.compile(r"typedef (enum|struct) (\w+) \{([^\n]*?|\n.*?\n)\} (\w+);", re.S)
INNER = re.compile(r"(?:struct|union) \{([^{}]*)\} (\w+);")
FIELD = re.compile(r"(\w+)[\s*]+(\w+)(?:\[\w+\])?;")
PROTOTYPE = re.compile(r"CUresult (cu\w+)\(([^;]*)\);")
CONSTANT = re.compile(r"^#define (CU(?:DA)?_\w+) (\S.*?)(?: /\*.*)?$", re.M)
NAME = re.compile(r"^#define (cu\w+) (?:SIMCUDA_PT[SD][SZ]\()?(cu\w+)\)?$", re.M)


def members(body, inner):
    """The names of a struct's members, those of structs and unions inside it with a dot."""
    while found := INNER.search(body):
        kind = f"inner{len(inner)}"
        inner[kind] = found.group(1)
        body = f"{body[:found.start()]}{kind} {found.group(2)};{body[found.end():]}"
    for kind, name in FIELD.findall(body):
        yield name
        for deeper in members(inner.get(kind, ""), inner):
            yield f"{name}.{deeper}"


def type_checks(text):
    ours, checks = [], []
    for kind, _, body, name in BLOCK.findall(text):
        if kind == "enum":
            ours.append(f"enum {name} {{{body}}};")
            for value in re.findall(r"(\w+)\s*(?:=[^,]*)?(?:,|$)", body.strip()):
                checks.append(f"static_assert(static_cast<long long>(::{value}) == static_cast<long long>(ours::{value}));")
        else:
            ours.append(f"struct {name} {{{body}}};")
            for field in members(body, {}):
                checks.append(f"static_assert(offsetof(::{name}, {field}) == offsetof(ours::{name}, {field}) && "
                              f"sizeof(::{name}::{field}) == sizeof(ours::{name}::{field}));")
        checks.append(f"static_assert(sizeof(::{name}) == sizeof(ours::{name}));")
    return ["namespace ours {"] + ours + ["}  // namespace ours"] + checks


def main():
    root, output = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    api = root / "tests/simcuda/include/simcuda"
    types = "\n".join(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S) for path in
                      (root / "shim/driver/abi.h", root / "shim/driver/array_abi.h",
                       root / "shim/driver/copy_abi.h", root / "shim/driver/launch_abi.h",
                       root / "shim/driver/graph_abi.h", api / "types.h", api / "array_types.h",
                       api / "device_attribute.h", api / "memory_location.h"))
    prototypes = [match for header in sorted(api.glob("api_*.h")) if header.name != "api_newer.h"
                  for match in PROTOTYPE.findall(re.sub(r"\s+", " ", header.read_text()))]
    asserts = type_checks(types)
    asserts += [f"static_assert(std::is_same_v<decltype(&::{symbol}), CUresult (*)({parameters})>);"
                for symbol, parameters in prototypes]
    constants = [f"CHECK(({name}) == ({value}));" for name, value in CONSTANT.findall(types)]
    names = [f'CHECK(text_of({alias}) == "{symbol}");' for alias, symbol in NAME.findall((api / "names.h").read_text())
             if alias != symbol]
    output.mkdir(parents=True, exist_ok=True)
    for name, lines in {"abi_asserts.inc": asserts, "abi_constants.inc": constants, "abi_names.inc": names}.items():
        (output / name).write_text("\n".join(lines) + "\n")


main()
