#!/usr/bin/env python3
"""The JSON of all verbs: one thing has one key, every key is in shim/cli/README.md, and verbs.schema.json has them all."""
import json
import pathlib
import re
import subprocess

import log_schema
from harness import BUILD, HANG, MIB, PROGRAMS, command_environment, expect, expect_that, main

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "shim/cli/README.md"
SCHEMA = json.loads(DOCUMENT.with_name("verbs.schema.json").read_text())
# Key: other words for the same thing, which no verb may use.
SYNONYMS = {"log": ["trace", "file", "path"], "pid": ["process", "process_id"], "dev": ["device", "ordinal"],
            "program": ["executable", "exe"], "peak_bytes": ["peak", "peak_used", "used_peak_bytes", "max_bytes"],
            "reserved_peak_bytes": ["peak_reserved_bytes", "reserved_peak", "peak_reserved"], "total": ["size", "size_bytes", "total_bytes"],
            "limit": ["limit_bytes", "memory_limit"], "reason": ["cause"], "allocs": ["allocations", "n_allocs"],
            "refusals_by_reason": ["failures_by_reason", "refused_by_reason"], "live_bytes": ["leaked_bytes"], "live_blocks": ["leaked_blocks", "live_count"],
            "peak_blocks": ["peak_count"]}
# Objects whose keys are names that users, or the driver, gave.
FREE = {"refusals_by_reason", "ended", "cut_off"}
# Places of files, which are no logs.
FILES = {"unnamed": {"path"}, "frames": {"file"}}


def ration(folder, *words, statuses=(0,)):
    done = subprocess.run([BUILD / "bin/ration", *words], env=command_environment() | {"RATION_STATE_DIR": f"{folder}/groups"}, cwd=folder,
                          capture_output=True, text=True, timeout=HANG, check=False)
    expect_that(f"{words}: {done.returncode} {done.stderr}", done.returncode in statuses)
    return done.stdout


def keys_of(value, within=""):
    """(key, the key of the object around it)"""
    if isinstance(value, dict):
        for key, inner in value.items():
            if within not in FREE:
                yield key, within
            yield from keys_of(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner, within)


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
    for verb, *words in (("report", "run.jsonl"), ("check", "run.jsonl", "--no-failures"), ("diff", "run.jsonl", "run.jsonl"), ("replay", "run.jsonl", "--find-min"), ("replay", "run.jsonl"),
                         ("env", "--sim", "1GiB", "--limit", "25%"), ("doctor", "--", "true"), ("doctor", "--coverage"), ("ps",)):
        yield " ".join([verb, *words]), json.loads(ration(folder, verb, "--json", *words, statuses=(0, 1)))
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


def one_word(folder):
    forbidden = {other: key for key, others in SYNONYMS.items() for other in others}
    seen = set()
    for verb, document in documents(folder):
        if verb == "describe":  # of options, not of what they measure
            continue
        expect_that(f"the schema of {verb}", str(document.get("schema", "")).startswith("ration."))
        for key, within in keys_of(document):
            if key not in FILES.get(within, ()):
                expect(f"{verb}: the key {key!r} within {within!r}", forbidden.get(key, key), key)
            seen.add(key)
    expect_that(f"{len(seen)} keys", len(seen) > 60)
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", DOCUMENT.read_text()))))
    expect("keys without a word in the document", sorted(seen - words), [])


main({"one word for one thing": one_word, "each in its schema": each_in_its_schema})
