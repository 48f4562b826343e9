#!/usr/bin/env python3
"""config/schema.json, `ration env --check` and the help agree: on valid and malformed values of every key, and on the
structure of a file."""
import json
import pathlib
import re
import subprocess

from harness import BUILD, expect, expect_that, main

ROOT = pathlib.Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "config/schema.json").read_text())

# key: values that are accepted, values that are refused
VALUES = {
    "limit": (["8GiB", "40%", 0.4, 1073741824, "0.4", {"0": "8GiB"}, {"GPU-1f2e": 0.5, "1": 1 << 30}, 1.0, 1e-05, 8e9, 1.5e12, 0.1 + 0.2,
               "1.0", "1.00", ".4", "00.40", "1048576", "01048576", "1.5GiB", ".5GiB", "100%", "100.0%", "040%", "2.5%", ".5%",
               "8gib", "8GIB", "8gi", "8GI", "8gb", "8gB", "2000kB", "8 GiB", "1.5 g", "40 %", "1048576B", "1048576 B"],
              ["8  GiB", "8Gib", "8Gb", "8 Gib", "8GIb", "1048576b", "8i", " 8g", "8 ", -1, 0, "", True, None, [], {}, {"0": True}, {"x": "1g"}, {"0=1g,1": "2g"}, "8.", "8.GiB", "8.%", ".", "1", "0", "1.5",
               "101%", "1000", "1e9", "-1", "1GiB ", "0.0", 1.5, 1000, -0.5]),
    "mode": (["pool", "async", "direct"], ["Pool", "", 1, True, None, "pool async"]),
    "preallocate": (["auto", True, False, "true", "false", "2GiB", 0.5], ["no", 1.5, None, {"0": "1g"}]),
    "preallocate_after": ([0, "0", "64MiB", 0.0, -0.0, 0.5], [-1, "x", True, "0.0"]),
    "headroom": ([0, "2%", 0.02], [-1, True, {"0": "1g"}]),
    "async_preallocate": ([-1, 0, "-1", 1 << 30, -1.0], [-2, "all", True, "-1.0"]),
    "backing": (["slab", "vmm", "auto"], ["mmap", 1]),
    "release_threshold": (["2MiB", "0", 64 << 20, 0.01], [5, True, "off"]),
    "granule": (["2MiB", "1GiB", 64 << 20, 0.01], [0, True, "off"]),
    "free": (["deferred", "synchronous"], ["sync", True]),
    "managed": (["limit", "count"], ["off", False]),
    "reserve": ([0, "2GiB", 0.1], [-1, True]),
    "show_limit": ([True, False, "false"], [0, "0", "no"]),
    "charge_context": ([True, "true"], [1, "yes"]),
    "container_limit": (["8GiB", {"0": "8GiB"}], ["x", True]),
    "group": (["lab-3_a.b"], ["a/b", "", 7, "g" * 65]),
    "group_limit": (["8GiB", {"0": "8GiB"}], ["x", True]),
    "guarantee": (["1GiB", 0.1], [0, True]),
    "ipc": (["auto", "direct"], ["none"]),
    "log": (["/tmp/%n.jsonl"], ["", 3, True]),
    "log_size": (["1GiB", 2097152], ["40%", True]),
    "stacks": (["none", "native", "python"], ["all"]),
    "fail": (["nth=3", "every=10,above=1MiB;probability=0.5,seed=3", "library=libcudnn,after=30s"], ["", 3, "cuMemAlloc@3", "nth", "nth=3,", "size=3"]),
    "diagnostics": (["off", "warn", "debug:/tmp/a"], ["verbose", "debug:", "", 3, True]),
    "state_dir": (["/run/ration"], ["ration", "", 3, True]),
    "wait": ([0, "0", "500ms", "30s", "5m", "1h", 30, "30", 1.5, "1.5s"], [-1, "-1s", "1 s", "1.s", ".5", "s", "", True]),
}

MATCH = {"exe": "*/python3*"}
STRUCTURE = {
    "taken": [{}, {"$schema": "schema.json"}, {"limit": "1g", "locked": ["limit"]}, {"locked": []}, {"rules": []},
              {"rules": [{"match": MATCH | {"argv": "*"}, "limit": "1g", "locked": ["limit"]}, {"match": MATCH}]}],
    "refused": [[], "limit", {"limti": "1g"}, {"RATION_LIMIT": "1g"}, {"state_dir": "x"}, {"config": "/x"}, {"disable": "1"},
                {"group_tree": "0123456789abcdef"}, {"locked": "limit", "limit": "1g"}, {"locked": ["limti"]}, {"locked": True},
                {"match": MATCH}, {"rules": {}}, {"rules": [1]}, {"rules": [{}]}, {"rules": [{"limit": "1g"}]},
                {"rules": [{"match": {}}]}, {"rules": [{"match": {"name": "x"}}]}, {"rules": [{"match": {"exe": 1}}]},
                {"rules": [{"match": MATCH, "rules": []}]}, {"rules": [{"match": MATCH, "$schema": "x"}]},
                {"rules": [{"match": MATCH, "limit": True}]}, {"rules": [{"match": {"exe": "x" * 1025}}]}],
}

TYPES = {"object": dict, "array": list, "string": str}


def is_of_type(value, name):
    if name in TYPES:
        return isinstance(value, TYPES[name])
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return number and (name == "number" or value == int(value))


def same(one, other):
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def fits(value, schema):
    """The part of JSON Schema that ours uses; an unknown keyword fails."""
    for word, what in schema.items():
        if word in ("$schema", "title", "description", "$defs"):
            continue
        if word == "$ref":
            good = fits(value, SCHEMA["$defs"][what.removeprefix("#/$defs/")])
        elif word == "anyOf":
            good = any(fits(value, each) for each in what)
        elif word == "type":
            good = is_of_type(value, what)
        elif word == "enum":
            good = any(same(value, each) for each in what)
        elif word in ("minimum", "exclusiveMinimum", "maximum"):
            good = not is_of_type(value, "number") or {
                "minimum": value >= what, "exclusiveMinimum": value > what, "maximum": value <= what}[word]
        elif word in ("pattern", "minLength", "maxLength"):
            good = not isinstance(value, str) or {"pattern": lambda: re.search(what, value) is not None,
                                                  "minLength": lambda: len(value) >= what,
                                                  "maxLength": lambda: len(value) <= what}[word]()
        elif word in ("items", "maxItems"):
            good = not isinstance(value, list) or (len(value) <= what if word == "maxItems" else all(fits(each, what) for each in value))
        else:
            good = not isinstance(value, dict) or fits_object(value, word, what, schema)
        if not good:
            return False
    return True


def fits_object(value, word, what, schema):
    known = schema.get("properties", {})
    return {"properties": lambda: all(fits(value[key], each) for key, each in what.items() if key in value),
            "required": lambda: all(key in value for key in what),
            "minProperties": lambda: len(value) >= what,
            "propertyNames": lambda: all(fits(key, what) for key in value),
            "additionalProperties": lambda: all(what is not False and fits(each, what)
                                                for key, each in value.items() if key not in known)}[word]()


def checked(folder, document):
    path = pathlib.Path(folder) / "settings.json"
    (path.parent / "enforced").touch()  # else a line says that RATION_DISABLE lifts its locks
    path.write_text(json.dumps(document))
    return checked_file(path, document)


def checked_file(path, document=""):
    done = subprocess.run([BUILD / "bin/ration", "env", "--check", path], capture_output=True, text=True, check=False)
    in_json = subprocess.run([BUILD / "bin/ration", "env", "--json", "--check", path], capture_output=True, text=True, check=False)
    found, = json.loads(in_json.stdout)["files"]
    expect("as JSON", (found["path"], found["holds"], in_json.stderr), (str(path), done.returncode == 0, ""))
    expect("its problems", [f"ration: env: {each['what']}" for each in found["problems"]], done.stderr.splitlines())
    expect_that(f"{document}: {done.stdout} {done.stderr}", done.stdout == "" and (done.returncode == 0) == (found["problems"] == []))
    expect_that(f"status of {document}", done.returncode in (0, 125))
    return not any(each["fatal"] for each in found["problems"]), done.stderr


def agree(folder, document, taken):
    good, said = checked(folder, document)
    expect(f"check of {document}: {said}", good, taken)
    expect(f"schema of {document}", fits(document, SCHEMA), taken)


def key(name):
    def case(folder):
        taken, refused = VALUES[name]
        for value in taken:
            agree(folder, {name: value}, True)
            agree(folder, {"rules": [{"match": MATCH, name: value}]}, True)
        for value in refused:
            agree(folder, {name: value}, False)
            agree(folder, {"rules": [{"match": MATCH, name: value}]}, False)
    return case


def trouble_for_doctor(folder):
    """What `ration doctor` calls trouble fails here too, though the file is used as written."""
    path = pathlib.Path(folder) / "alone/settings.json"  # without a file `enforced`
    path.parent.mkdir()
    for document, words in (({"limit": "1g", "locked": ["limit"]}, "RATION_DISABLE=1 lifts the locks of this file"),
                            ({"group_limit": "1g"}, "this file names no group"), ({"group": "a", "group_limit": "1g"}, None)):
        path.write_text(json.dumps(document))
        good, said = checked_file(path, document)
        expect(f"{document}: {said}", (good, said.count("\n"), words is None or words in said), (True, int(words is not None), True))


def spelling(folder):
    """A parsed 1 may have been 1.0, the whole device: only the spelling tells, so the check sees it and the schema does not."""
    for text, taken in (("1.0", True), ("1", False), ("1.000", True)):
        path = pathlib.Path(folder) / "settings.json"
        path.write_text(f'{{"limit": {text}}}')
        expect(f"limit {text}", checked_file(path)[0], taken)
    expect("schema", fits({"limit": 1}, SCHEMA), True)


def twice(folder):
    """A parsed document has each key once, a file may have it twice."""
    path = pathlib.Path(folder) / "settings.json"
    for text in ('{"rules": [], "rules": []}', '{"limit": "1g", "locked": ["limit"], "locked": []}',
                 '{"rules": [{"match": {"exe": "a"}, "match": {"exe": "*"}}]}', '{"rules": [{"match": {"exe": "a", "exe": "b"}}]}',
                 '{"limit": "1g", "limit": "2g"}', '{"limit": {"0": "1g", "0": "2g"}}', '{"limti": 1, "limti": 2}'):
        path.write_text(text)
        good, said = checked_file(path)
        expect_that(f"{text}: {said}", not good)
    path.write_text('{"rules": [], "rules": []}')
    expect("said", checked_file(path)[1], f'ration: env: {path}:1:15: "rules" appears twice\n')


def structure(folder):
    for document in STRUCTURE["taken"]:
        agree(folder, document, True)
    for document in STRUCTURE["refused"]:
        agree(folder, document, False)


def every_key_has_values(_):
    expect("keys", sorted(VALUES), sorted(set(SCHEMA["properties"]) - {"$schema", "locked", "rules"}))


def help_and_manual_name_everything(_):
    text = subprocess.run([BUILD / "bin/ration", "run", "--help-all"], capture_output=True, text=True, check=True).stdout
    manual = (BUILD / "share/man/man1/ration.1").read_text().replace("\\-", "-").replace("\\(dq", '"')
    table = (ROOT / "config/options.inc").read_text()
    flags = set(re.findall(r'"(--[a-z-]+)"', table))
    expect_that("flags", len(flags) > 5)
    for flag in flags:
        expect_that(f"{flag} in the help and the manual", flag in text and flag in manual)
    for name in VALUES:
        expect_that(f"{name} in the manual", f'"{name}"' in manual and f"RATION_{name.upper()}" in manual)


main({f"key {name}": key(name) for name in VALUES}
     | {"structure": structure, "spelling": spelling, "trouble for doctor": trouble_for_doctor, "keys that stand twice": twice, "every key has values": every_key_has_values,
        "help and manual": help_and_manual_name_everything})
