#!/usr/bin/env python3
"""The JSON of all verbs: a key has one type and one meaning (verbs.schema.json), and the same thing has the same key."""
import collections
import json
import pathlib
import re
import subprocess

import log_schema
from harness import BUILD, GIB, HANG, MIB, PROGRAMS, command_environment, expect, expect_that, main

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "shim/cli/verbs.schema.json").read_text())
REASONS = "refusals_by_reason"  # its keys are the reasons for a refusal
# Words in the meaning of a number, and the part of its key that says the same.
NAMES = ((r"bytes", r"bytes"), (r"\bthe most\b", r"peak"), (r"^(the )?(\w+ )?(time|age) |\bhow (long|old)\b", r"_(ns|ts)"),
         (r"^number of the record", r"_seq$"), (r"^(allocations|frees|refusals|requests that were refused)\b", r"(allocs|frees|refusals|failures)$"))
# Limits and guarantees have the names of the settings; the contract names the keys of a leak.
LIMITS = {"limit", "limit_at_start", "limit_stated", "group_limit", "guarantee", "min_limit", "min_limit_sum"}


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
        expect(f"{verb}: sizes whose keys do not say so", sizes_without_a_unit(document), set())
        expect_that(f"{verb}: another key is refused", log_schema.first_problem(validators[kind], document | {"novel": 1}))
    listed = {each["$ref"].rpartition("/")[2] for each in SCHEMA["oneOf"]}
    expect("verbs without a document here", listed - set(validators), set())


def sizes_without_a_unit(document):
    """Keys of figures as large as sizes are, which are not times or numbers of other kinds."""
    return {key for key, value in facts(document) if isinstance(value, int) and key not in LIMITS
            and not key.endswith(("bytes", "bytes_sum", "_ns", "_ts", "pid_namespace", "context"))}


def unlike_their_meanings(keys):
    return [key for key, of in keys.items() if {"integer", "number"} & {*([of["type"]] if isinstance(of["type"], str) else of["type"])}
            and any(re.search(words, of["description"]) and not re.search(part, key) for words, part in NAMES) and key not in LIMITS]


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
    expect("keys unlike their meanings", unlike_their_meanings(SCHEMA["keys"]), [])
    for wrong in ({"held": {"type": "integer", "description": "bytes that a group holds"}},
                  {"most_bytes": {"type": "integer", "description": "the most bytes of all"}}):
        expect("a planted key", unlike_their_meanings(wrong), list(wrong))
    meanings = collections.Counter(key["description"] for key in SCHEMA["keys"].values())
    expect("meanings of several keys", [meaning for meaning, count in meanings.items() if count > 1], [])


# Sizes that no two things of this program share: its blocks, and a request that its limit refuses.
STEPS = ["init", "context=0", "alloc=37m", "alloc=11m", "alloc=5m", "free=1", "alloc=2m", "alloc=101m", "alloc=3m"]
LIMIT = 83 * MIB
# Keys whose figures are equal here, though they are of different things. Direct mode: a device holds what blocks take.
EQUAL_HERE = [{"peak_bytes", "reserved_peak_bytes", "least_peak_bytes", "at_peak_bytes", "peak_bytes_sum", "requested_peak_bytes",
               "min_limit", "min_arena_bytes"},
              {"live_bytes", "bytes"}, {"limit", "limit_at_start", "value_bytes"}, {"used_bytes", "live_bytes"}, {"guarantee", "guaranteed_bytes", "value_bytes"},
              {"limit", "limit_stated", "group_limit", "value_bytes"},  # of a group: the limit of an object that is the group
              {"reserved_bytes", "used_bytes", "peak_bytes", "reserved_peak_bytes", "claimed_bytes", "process_claimed_bytes", "claimed_peak_bytes",
               "live_bytes"}]
# What a member of a group asks while it holds three blocks; a guarantee that is less than it holds.
HELD, GROUP, GUARANTEED = 13 * MIB, 211 * MIB, 31 * MIB
ASKING = f"""mkfifo in; {PROGRAMS / 'holder'} 3 {HELD} {101 * MIB} <in >out & exec 3>in
until grep -q ready out; do :; done
{BUILD / 'bin/ration'} set lab --limit {GROUP} --json >set; {BUILD / 'bin/ration'} ps --json >ps; {BUILD / 'bin/ration'} env --json >env
exec 3>&-; wait"""


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
    expect("two keys for one thing", two_keys(said, {LIMIT, 101 * MIB, 53 * MIB}), {})
    expect("a planted one", two_keys(said | {"planted": {"refused_size": 101 * MIB}}, set()),
           {101 * MIB: {"largest_refused_bytes": "run", "refused_size": "planted"}})
    for key in ("program", "exe", "limit", "pid", "dropped", "largest_refused_bytes", "lacking_bytes", "peak_bytes", "reserved_peak_bytes"):
        values = {json.dumps(value) for document in said.values() for value in values_of(document, key)}
        expect_that(f"{key} is {values}", len(values) == 1)


def one_key_while_it_runs(folder):
    """Likewise what a member of a group, and the group, are said to have."""
    ration(folder, "run", "--sim", "1GiB", "--mode", "direct", "--limit", str(LIMIT), "--group", "lab", "--group-limit", str(GROUP),
           "--guarantee", str(GUARANTEED), "--summary", "summary", "--", "sh", "-c", ASKING)
    said = {name: json.loads((pathlib.Path(folder) / name).read_text()) for name in ("ps", "set", "env", "summary")}
    expect("two keys for one thing", two_keys(said, {LIMIT, GROUP, GUARANTEED, 3 * HELD, GIB}), {})
    said["ps"]["devices"][0]["total"] = said["ps"]["devices"][0].pop("total_bytes")
    expect("a planted one", two_keys(said, set()), {GIB: {"total": "ps", "total_bytes": "env"}})


def two_keys(said, known):
    """The figures and paths that have several keys, with one verb for each. REQUIRES: the figures `known` are among them."""
    keys = collections.defaultdict(dict)
    for verb, document in said.items():
        for key, value in facts(document):
            if not key.endswith(("_ns", "_ts")):
                keys[value].setdefault(key, verb)
    expect("figures that are not there", known - set(keys), set())
    return {value: named for value, named in keys.items() if len(named) > 1 and not any(set(named) <= equal for equal in EQUAL_HERE)}


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


main({"one meaning for one key": one_meaning, "one key for one thing": one_key, "one key while it runs": one_key_while_it_runs,
      "each in its schema": each_in_its_schema})
