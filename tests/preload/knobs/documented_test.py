#!/usr/bin/env python3
"""config/options.inc agrees with the library, config/README.md, the schema, the manual and the help: the default that it
names is in force, and exactly the values that it names are accepted."""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "scripts"))

import tables  # noqa: E402
from harness import BUILD, GIB, MIB, clean_environment, expect, expect_that, main, run  # noqa: E402

OPTIONS = {option["key"]: option for option in tables.options()}
# For each word in capitals among the values: examples that are accepted and that are refused.
KINDS = {"SIZE": (["1GiB", "40%"], ["8Gib"]), "DEVICE=SIZE,...": (["0=1GiB"], ["0=x"]), "NAME": (["team"], ["a/b"]),
         "FILE": (["/nowhere/file"], ["a\nb"]), "FOLDER": (["/nowhere"], ["nowhere"]), "RULES": (["nth=3", "every=2,above=1MiB;probability=0.5"], ["nth", "size=3"]), "BYTES": (["1GiB", "2097152"], ["40%", "0.5", "1"]), "DURATION": (["500ms", "30s", "1.5"], ["30d", "-1s"]),
         "LEVEL:FILE": (["trace:/nowhere/file"], ["verbose:/nowhere/file", "debug:"]), "NUMBER[=LIMIT];...": (["0123456789abcdef=1GiB"], ["1"])}
# Environments in which a default has an effect.
WORLDS = ({}, {"RATION_LIMIT": "1GiB"}, {"RATION_LIMIT": "4GiB"}, {"RATION_MODE": "async", "RATION_LIMIT": "1GiB"},
          {"RATION_MODE": "direct", "RATION_LIMIT": "1GiB"})


def default_of(option):
    """The value that the text of the default begins with; None: there is no such value."""
    value = re.split(r"[: ]", option["default"], maxsplit=1)[0] if not option["default"].startswith("max(") else "512MiB"
    return None if value == "none" else value.replace("<uid>", str(os.geteuid()))


def done_by(environment):
    """With a ledger of its own: in a shared one it would wait for memory of members that have just exited. And with a
    machine of its own, on whose device it has no neighbours, whatever the ledger."""
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as machine:
        done = run("knobs", str(2 * GIB), SIMCUDA_DEVICES="4GiB", SIMCUDA_CONTEXT_BYTES=str(256 * MIB), HOME="/nowhere",
                   SIMCUDA_MACHINE=machine, **{"RATION_STATE_DIR": folder} | environment)
    expect(f"status and what was said under {environment}", (done.status, done.err), (0, ""))
    return done.out


def default(key):
    def case(_):
        option, value = OPTIONS[key], default_of(OPTIONS[key])
        for world in WORLDS:
            if value is not None and option["variable"] not in world:
                expect(f"{option['variable']}={value} under {world}", done_by(world | {option["variable"]: value}), done_by(world))
    return case


def large_headroom(_):
    """The second half of max(512MiB, 2%), on a device where it is the larger one."""
    def then(**settings):
        with tempfile.TemporaryDirectory() as folder:
            out = run("knobs", SIMCUDA_DEVICES="64GiB", RATION_LIMIT="100%", RATION_STATE_DIR=folder, **settings).out
        return re.search(r"then (\d+)", out)[1]
    expect("preallocated", then(RATION_HEADROOM="2%"), then())
    expect_that("and it shows", then(RATION_HEADROOM="512MiB") != then())


def reported(variable, value, **more):
    done = subprocess.run([BUILD / "bin/ration", "env", "--json"], env=clean_environment() | {"HOME": "/nowhere", variable: value, **more},
                          capture_output=True, text=True, check=False)
    return done.returncode, json.loads(done.stdout), done.stderr


def values(key):
    def case(_):
        option = OPTIONS[key]
        words = option["values"].split()
        expect_that(f"kinds of {words}", all(word in KINDS for word in words if word.upper() == word and re.search("[A-Z]", word)))
        taken = [value for word in words for value in KINDS.get(word, ([word], []))[0]]
        refused = [value for word in words for value in KINDS.get(word, ([], []))[1]] or [words[0].upper() + "?"]
        if key == "config":  # an absent file is a mistake of its own
            taken = []
        if not any(word in ("SIZE", "DEVICE=SIZE,...", "FILE", "FOLDER", "RULES", "NAME", "BYTES") for word in words):
            refused += [value for value in ("true", "0", "off", "auto", "1GiB", "x") if value not in words]
        for value in taken:
            code, document, said = reported(option["variable"], value, **({"RATION_GROUP": "lab"} if key == "guarantee" else {}))
            expect(f"{key}={value}: {said}", (code, document["problems"] if key != "group_limit" else []), (0, []))
            row = [row for row in document["settings"] if row["key"] == key]
            expect(f"{key}={value}", [(one["value"], one["source"], one["variable"]) for one in row] if key != "disable" or value == "0" else [],
                   [(value, "environment", option["variable"])] if key != "disable" or value == "0" else [])
        for value in refused:
            code, document, said = reported(option["variable"], value)
            expect_that(f"{key}={value} is taken", code == 125 and option["variable"] in said and len(document["problems"]) >= 1)
    return case


def plain(text):
    """The words of a text, or of a manual page, without fonts and lines."""
    return " ".join(re.sub(r"\\f[BIPR]|`", "", text).replace("\\-", "-").replace("\\&", "").replace("\\e", "\\").split())


def texts_agree(_):
    """The table of config/README.md, the schema, the manual and the help of `ration run` have the texts of the list."""
    readme, schema = (ROOT / "config/README.md").read_text(), json.loads((ROOT / "config/schema.json").read_text())["properties"]
    manual = plain((BUILD / "share/man/man1/ration.1").read_text())
    shown = " ".join(subprocess.run([BUILD / "bin/ration", "run", "--help-all"], capture_output=True, text=True, check=True).stdout.split())
    for option in OPTIONS.values():
        row = [line for line in readme.splitlines() if line.startswith(f"| `{option['variable']}`")]
        expect(f"rows of {option['key']}", len(row), 1)
        for part in (option["values"], option["default"], option["text"]):
            expect_that(f"config/README.md: {part}", tables.cell(part) in row[0])
            expect_that(f"manual: {part}", plain(part) in manual)
        expect(f"schema of {option['key']}", option["key"] in schema, option["scope"] != "kVariable")
        if option["key"] in schema:
            expect("description", schema[option["key"]]["description"], f"{option['text']} (default: {option['default']})")
        if option["flag"]:
            expect_that(f"help: {option['flag']}", re.search(re.escape(option["flag"]) + r"[ \[]", shown) and option["text"] in shown)


def env_lists_everything(_):
    _, document, _ = reported("RATION_MODE", "pool")
    expect("settings", [(row["key"], row["default"]) for row in document["settings"]],
           [(key, option["default"]) for key, option in OPTIONS.items()])


main({f"default of {key}": default(key) for key in OPTIONS} | {f"values of {key}": values(key) for key in OPTIONS}
     | {"a large device's headroom": large_headroom, "texts agree": texts_agree, "ration env": env_lists_everything})
