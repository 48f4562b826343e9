#!/usr/bin/env python3
"""Every option that config/options.inc marks as accepted and not built yet: a value other than the default gets one line on stderr,
in a process under the library, under `ration run` and from `ration env`; the default is silent."""
import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tests/preload"))
sys.path.insert(0, str(ROOT / "scripts"))

import tables  # noqa: E402
from harness import BUILD, PROGRAMS, clean_environment, driver_folder, expect, expect_that, main, run  # noqa: E402

MARKED = {option["key"]: option for option in tables.options() if option["state"] == "kAccepted"}
VALUES = {"POWER": "2MiB", "SIZE": "1GiB", "FAULTS": "cuMemAlloc@3", "DURATION": "30s"}
MACHINE = {"SIMCUDA_DEVICES": "4GiB", "RATION_LIMIT": "64MiB", "HOME": "/nowhere"}
RATION = BUILD / "bin/ration"
SUMMARY = re.compile(r"^ration: (?:knobs \(pid|  ).*\n", re.M)  # of `ration run`


def environment(folder, **more):
    return clean_environment() | MACHINE | {"RATION_STATE_DIR": f"{folder}/state"} | more


def lines_of(folder, **settings):
    """stderr of the same program under a bare LD_PRELOAD, under `ration run`, and of `ration env`."""
    bare = run("knobs", RATION_STATE_DIR=f"{folder}/state", **MACHINE, **settings)
    driver = {"LD_LIBRARY_PATH": str(driver_folder("sim"))}
    under = subprocess.run([RATION, "run", "--", PROGRAMS / "knobs"], env=environment(folder, **settings, **driver),
                           capture_output=True, text=True, check=False)
    env = subprocess.run([RATION, "env", "--json"], env=environment(folder, **settings), capture_output=True, text=True, check=False)
    expect(f"status of {settings}: {bare.err} {under.stderr} {env.stderr}", (bare.status, under.returncode, env.returncode), (0, 0, 0))
    texts = (bare.err, SUMMARY.sub("", under.stderr), env.stderr)
    return [text.splitlines() for text in texts], json.loads(env.stdout)


def no_effect(key):
    def case(folder):
        option = MARKED[key]
        value = next(VALUES[word] for word in option["values"].split() if word in VALUES)
        written = f"{option['variable']}={value}"
        wanted = [f"ration: {written}: this setting is not implemented yet and has no effect"]
        lines, document = lines_of(folder, **{option["variable"]: value})
        expect("bare, under ration run, ration env", lines, [wanted] * 3)
        expect("problems", [(problem["key"], problem["fatal"]) for problem in document["problems"]], [(key, False)])
        table = subprocess.run([RATION, "env"], env=environment(folder, **{option["variable"]: value}),
                               capture_output=True, text=True, check=True).stdout
        expect("in JSON", [row["key"] for row in document["settings"] if not row["has_effect"]], [key])
        row = [line for line in table.splitlines() if line.startswith(key + " ")]
        expect("in the table", [line.split(maxsplit=2)[2] for line in row], [f"{written} (no effect yet)"])
    return case


def default_is_silent(key):
    def case(folder):
        option = MARKED[key]
        default = option["default"].split()[0]
        if option["values"] != "SIZE":  # a size has no word for none
            lines, document = lines_of(folder, **{option["variable"]: default})
            expect(f"{option['variable']}={default}", (lines, document["problems"]), ([[], [], []], []))
    return case


def in_a_file(folder):
    """Each setting of a file says so with its place."""
    file = pathlib.Path(folder) / "settings.json"
    file.write_text('{\n"large_alignment": "2MiB"}')
    (_, _, env), _ = lines_of(folder, RATION_CONFIG=str(file))
    sentences = [f"{file}:2:1: large_alignment=2MiB: this setting is not implemented yet and has no effect"]
    expect("lines", env, [f"ration: {sentence}" for sentence in sentences])
    check = subprocess.run([RATION, "config", "--check", file], capture_output=True, text=True, check=False)
    expect("config --check", (check.returncode, check.stderr.splitlines()), (0, [f"ration: config: {each}" for each in sentences]))


expect_that(f"marked: {list(MARKED)}", MARKED)
main({f"{key} has no effect": no_effect(key) for key in MARKED}
     | {f"default of {key} is silent": default_is_silent(key) for key in MARKED} | {"in a file": in_a_file})
