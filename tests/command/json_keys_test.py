#!/usr/bin/env python3
"""The JSON of all verbs: a key has one type and one meaning (verbs.schema.json), and the same thing has the same key."""
import collections
import json
import pathlib
import subprocess

import log_schema
from harness import BUILD, HANG, MIB, PROGRAMS, command_environment, expect, expect_that, main

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "shim/cli/verbs.schema.json").read_text())
REASONS = "refusals_by_reason"  # its keys are the reasons for a refusal


def ration(folder, *words, statuses=(0,)):
    done = subprocess.run([BUILD / "bin/ration", *words], env=command_environment() | {"RATION_STATE_DIR": f"{folder}/groups"}, cwd=folder,
                          capture_output=True, text=True, timeout=HANG, check=False)
    expect_that(f"{words}: {done.returncode} {done.stderr}", done.returncode in statuses)
    return done.stdout


def documents(folder):
    """What each verb prints, by its name."""
    ration(folder, "run", "--sim", "1GiB", "--limit", "25%", "--log", "run.jsonl", "--stacks", "native", "--summary", "summary.json", "--",
           BUILD / "bin/ration-example", "a")
    yield "run", json.loads((pathlib.Path(folder) / "summary.json").read_text())
    member = f"{PROGRAMS / 'counted'} counts 1 10 stay </dev/zero & until [ -s counts ] && [ $(od -An -tu8 -N8 counts) = 10 ]; do :; done"
    ask = f"{BUILD / 'bin/ration'} ps --json >ps; {BUILD / 'bin/ration'} set lab --limit 300MiB --json >set"
    ration(folder, "run", "--sim", "1GiB", "--group", "lab", "--group-limit", "50%", "--summary", "summary.json", "--",
           "sh", "-c", f"{member}; {ask}; kill -9 $!; wait; true")
    for name, file in (("ps of a group", "ps"), ("set", "set"), ("run in a group", "summary.json")):
        yield name, json.loads((pathlib.Path(folder) / file).read_text())
    yield "describe", json.loads(ration(folder, "--describe"))
    (pathlib.Path(folder) / "wrong.json").write_text('{"limit": "8Gib", "mode": "poll"}')
    for verb, *words in (("report", "run.jsonl"), ("report", "run.jsonl", "--leaks"), ("check", "run.jsonl", "--no-failures"),
                         ("diff", "run.jsonl", "--", "run.jsonl", "--fail-above", "5%"), ("replay", "run.jsonl", "--find-min"), ("replay", "run.jsonl", "--limit", "64MiB"),
                         ("env", "--sim", "1GiB", "--limit", "25%"), ("env", "--files"), ("doctor", "--", "true"), ("doctor", "--coverage"), ("ps",)):
        yield " ".join([verb, *words]), json.loads(ration(folder, verb, *words, "--json", statuses=(0, 1)) if verb != "doctor"
                                                   else ration(folder, verb, "--json", *words, statuses=(0, 1)))
    yield "env --check", json.loads(ration(folder, "env", "--json", "--check", "wrong.json", statuses=(125,)))
    command = ["--sim", "1GiB", "--json", "--", PROGRAMS / "steps", "init", "context=0", "alloc=100m"]
    yield "find-min", json.loads(ration(folder, "find-min", "--tolerance", str(256 * MIB), *command))
    yield "find-faults", json.loads(ration(folder, "find-faults", "--first", "2", *command, statuses=(0, 1)))


def each_in_its_schema(folder):
    """Closed: a key that the schema does not list is an error."""
    validators = {}
    for verb, document in documents(folder):
        kind = document["schema"].removeprefix("ration.").removesuffix("/1")
        validators[kind] = validators.get(kind) or log_schema.compiled(SCHEMA, kind)
        expect(f"{verb}: what is wrong", log_schema.first_problem(validators[kind], document), None)
        expect_that(f"{verb}: another key is refused", log_schema.first_problem(validators[kind], document | {"novel": 1}))
    listed = {each["$ref"].rpartition("/")[2] for each in SCHEMA["oneOf"]}
    expect("verbs without a document here", listed - set(validators), set())


def one_meaning(_):
    """Each property is that of `keys`, where a key has one type and a meaning that no other key has."""
    seen = set()
    for name, definition in SCHEMA["definitions"].items():
        for key, value in definition["properties"].items() if name != "by_reason" else ():
            seen.add(key)
            kind = SCHEMA["keys"][key]["type"]
            here = value.get("type", "string" if "const" in value else "object")
            expect(f"{key} of {name}", value if "/keys/" in value.get("$ref", "") else here,
                   {"$ref": f"#/keys/{key}"} if "/keys/" in value.get("$ref", "") else kind)
    expect("keys that nothing has", set(SCHEMA["keys"]) - seen, set())
    meanings = collections.Counter(key["description"] for key in SCHEMA["keys"].values())
    expect("meanings of several keys", [meaning for meaning, count in meanings.items() if count > 1], [])


# Sizes that no two things of this program share: its blocks, and a request that its limit refuses.
STEPS = ["init", "context=0", "alloc=37m", "alloc=11m", "alloc=5m", "free=1", "alloc=2m", "alloc=101m", "alloc=3m"]
LIMIT = 83 * MIB
# Keys whose figures are equal here, though they are of different things. Direct mode: a device holds what blocks take.
EQUAL_HERE = [{"peak_bytes", "reserved_peak_bytes", "least_peak_bytes", "at_peak_bytes", "peak_bytes_sum", "min_limit", "min_arena_bytes"},
              {"live_bytes", "bytes"}, {"limit", "limit_at_start"}, {"used", "bytes"}]


def facts(value, path=()):
    """(key, figure) of bytes, and names; without what changed from one log to another"""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key != "change":
                yield from facts(inner, (*path, key))
    elif isinstance(value, list):
        for inner in value:
            yield from facts(inner, path)
    elif (isinstance(value, int) and value >= MIB) or (isinstance(value, str) and "/" in value):
        yield path[-1], value


def one_key(folder):
    """What several verbs say of one run. A figure or a path that two keys have is one thing with two names."""
    ration(folder, "run", "--sim", "1GiB", "--mode", "direct", "--limit", str(LIMIT), "--log", "run.jsonl", "--summary", "summary.json", "--",
           PROGRAMS / "steps", *STEPS, statuses=(0, 2))
    said = {"run": json.loads((pathlib.Path(folder) / "summary.json").read_text())}
    for verb, *words in (("report",), ("report", "--leaks"), ("check", "--max-peak", "1GiB"), ("diff", "run.jsonl"), ("replay", "--mode", "direct"),
                         ("replay", "--mode", "direct", "--find-min")):
        said[" ".join([verb, *words])] = json.loads(ration(folder, verb, "run.jsonl", *words, "--json"))
    keys = collections.defaultdict(dict)
    for verb, document in said.items():
        for key, value in facts(document):
            if not key.endswith(("_ns", "_ts")):
                keys[value].setdefault(key, verb)
    expect_that(f"figures {keys}", {LIMIT, 101 * MIB, 53 * MIB} <= set(keys))
    for value, named in keys.items():
        expect_that(f"{value} is called {named}", len(named) == 1 or any(set(named) <= equal for equal in EQUAL_HERE))
    for key in ("program", "exe", "limit", "pid", "dropped", "largest_refused_bytes", "lacking_bytes", "peak_bytes", "reserved_peak_bytes"):
        values = {json.dumps(value) for document in said.values() for value in values_of(document, key)}
        expect_that(f"{key} is {values}", len(values) == 1)


def values_of(value, key):
    if isinstance(value, dict):
        if key in value:
            yield value[key]
        for name, inner in value.items():
            if name not in ("change", REASONS):
                yield from values_of(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from values_of(inner, key)


main({"one meaning for one key": one_meaning, "one key for one thing": one_key, "each in its schema": each_in_its_schema})
