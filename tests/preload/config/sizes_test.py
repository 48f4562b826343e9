#!/usr/bin/env python3
"""Every program that reads sizes takes the same spellings for the same bytes, and refuses the same: the rows of sizes.txt, in
each place of a command line, a variable and a file where a size may stand. The plug-in of Slurm gives the reasons that `ration` gives."""
import json
import pathlib
import re
import subprocess
from fractions import Fraction

from harness import BUILD, GIB, HANG, LIBRARY, PROGRAMS, SANITIZED, Failure, clean_environment, driver_folder, expect, expect_that, main

HERE = pathlib.Path(__file__).parent
DEVICE = 16 * GIB
RATION = BUILD / "bin/ration"
PLUGIN = BUILD / "lib/ration/slurm/spank_ration.so"


def rows():
    for line in (HERE / "sizes.txt").read_text().splitlines():
        if not line.startswith("#"):
            text, wanted = (part.strip() for part in line.split("|"))
            yield text.strip('"'), None if wanted == "refused" else int(wanted)


def is_share(text):
    return text.endswith("%") or re.fullmatch(r"[0-9]*\.[0-9]+", text)


class Place:
    """A place where a size may stand. Its command takes the size with status 0, or fails later for another reason."""

    def __init__(self, words, seen=None, shares=True, lines=None, **environment):
        self.words, self.seen, self.shares, self.lines, self.environment = words, seen, shares, lines, environment

    def check(self, folder, text, wanted):
        def put(word):
            return str(word).replace("SIZE", text).replace("FOLDER", folder)

        environment = clean_environment() | {"RATION_STATE_DIR": folder, "HOME": folder} | {
            name: put(value) for name, value in self.environment.items()}
        done = subprocess.run([put(word) for word in self.words], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=HANG, check=False)
        what = f"{text!r}: {done.stdout}{done.stderr}"
        taken = done.returncode == 0 if self.lines is None else re.search(self.lines, done.stdout + done.stderr) is not None
        expect(what, taken, wanted is not None and (self.shares or not is_share(text)))
        if taken and self.seen:
            expect(what, self.seen(done.stdout), wanted)


def setting(out):
    setting = next(each for each in json.loads(out)["settings"] if each["key"] == "limit")
    return setting["value_bytes"] if "value_bytes" in setting else DEVICE * share(setting["value"]) // 1


def share(text):
    return Fraction(text.rstrip("% ")) / (100 if text.endswith("%") else 1)


def of_plugin(out):
    limit = re.search(r"^RATION_LIMIT=(.*)$", out, re.M).group(1)
    return DEVICE * share(limit) // 1 if limit.endswith("%") else int(limit)


def first_device(out):
    return json.loads(out)["devices"][0]["total_bytes"]


def total(out):
    return int(re.search(r"total=(\d+)", out).group(1))


SIMULATED = {"LD_LIBRARY_PATH": driver_folder("sim")}
LOG_ABSENT = "absent.jsonl: No such file"
PLACES = {
    "RATION_LIMIT": Place([RATION, "env", "--json"], setting, RATION_LIMIT="SIZE"),
    "the option --limit": Place([RATION, "env", "--json", "--limit", "SIZE"], setting),
    "the limit of a device": Place([RATION, "env", "--limit", "0=SIZE"]),
    "a simulated device": Place([RATION, "env", "--json", "--sim", "SIZE"], first_device, shares=False),
    "SIMCUDA_DEVICES": Place([PROGRAMS / "steps", "init", "total=0"], total, lines="total=0: 0", shares=False, SIMCUDA_DEVICES="SIZE",
                             **SIMULATED),
    "an operation of tests": Place([PROGRAMS / "steps", "init", "context=0", "alloc=SIZE"], lines="alloc=.*: [02]$", shares=False,
                                   **SIMULATED),
    "pool_replay": Place([BUILD / "bin/pool_replay", "--trace", "FOLDER/trace", "--arena", "SIZE", "--json"],
                         lambda out: json.loads(out)["arena_bytes"], shares=False),
    "ration check": Place([RATION, "check", "absent.jsonl", "--max-peak", "SIZE"], lines=LOG_ABSENT),
    "ration replay": Place([RATION, "replay", "absent.jsonl", "--limit", "SIZE"], lines=LOG_ABSENT),
    "ration diff": Place([RATION, "diff", "absent.jsonl", "absent.jsonl", "--fail-above", "SIZE"], lines=LOG_ABSENT),
    "ration find-min": Place([RATION, "find-min", "--tolerance", "SIZE", "--", "/absent/program"], lines="/absent/program: No such"),
    "ration cdi": Place([RATION, "cdi", "name=SIZE"]),
    "ration set": Place([RATION, "set", "nobody", "--limit", "SIZE"], lines="no process or group"),
    "the plug-in of Slurm": Place([PROGRAMS / "slurm_host", PLUGIN, "SIZE", f"library={LIBRARY}"], of_plugin),
}
# A growth is not one of a device: it may be none, or more than all. A list of devices has commas.
OTHERWISE = {"ration diff": {"0%", "101%"}, "SIMCUDA_DEVICES": {"1,5GiB"}}


def taken_alike(name, place):
    def case(folder):
        (pathlib.Path(folder) / "trace").write_text("a 1 512\nf 1\n")
        wrong = []
        for text, wanted in rows():
            try:
                if text not in OTHERWISE.get(name, ()):
                    place.check(folder, text, wanted)
            except Failure as failure:
                wrong.append(str(failure))
        expect(f"rows of sizes.txt that are read otherwise: {len(wrong)}", wrong, [])
    return case


def of_slurm(folder, size, *arguments):
    """Why the plug-in refuses it."""
    done = subprocess.run([PROGRAMS / "slurm_host", PLUGIN, size, f"library={LIBRARY}", *arguments], env=clean_environment(),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=False)
    expect(f"status with {size} {arguments}", (done.returncode, done.stdout), (1, ""))
    return done.stderr


def slurm_words(folder):
    """The plug-in says of each size what `ration` says of it, and of each argument of plugstack.conf what it takes."""
    refused = [text for text, wanted in rows() if wanted is None and "," not in text]  # with commas, --limit is a list of devices
    for text in refused + ["2", "500", "1", "1023k", "120%", "-3", "2Gib"]:
        done = subprocess.run([RATION, "env", "--limit", text], env=clean_environment() | {"RATION_STATE_DIR": folder},
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG, check=False)
        words = re.split("; for no limit|; until it is corrected", done.stderr)[0].removeprefix("ration: env: --limit ")
        expect("--gpu-mem", of_slurm(folder, text), f"ration: --gpu-mem={words}\n")
    for text, why in {"": "it is empty", "0=2GiB": "devices are not named here", "0.0000000001%": "below a millionth of a percent",
                      "9" * 100: "it is too long for a size"}.items():
        expect_that(f"{text!r}: {why}", f"--gpu-mem={text}: " in of_slurm(folder, text) and why in of_slurm(folder, text))
    for argument, why in {
            "guarantee=no": "write guarantee=tasks, the default, or guarantee=none", "guarantee=": "write guarantee=tasks",
            "guarante=none": "known are library= shards= margin= memory= guarantee= state=", "margin=100%": "a GPU, below 100,",
            "shards=0": "how many shards one GPU has", "memory=16": "below the smallest size, 1MiB; likely meant: 16MiB or 16GiB",
            "memory=80Gib": "likely meant: 80GiB", "memory=40%": "a percentage has no meaning here: write a size in bytes",
            "state=here": "a path that begins with /"}.items():
        said = of_slurm(folder, "1GiB", argument)
        expect_that(f"{why!r} in {said}", f"is not started: '{argument}' in plugstack.conf: " in said and why in said)


# Built with a sanitizer, `ration env` gets no answer of the simulated driver.
main({name: taken_alike(name, place) for name, place in PLACES.items()
      if ("Slurm" not in name or PLUGIN.exists()) and not (SANITIZED and place.seen is first_device)} |
     ({"the words of the plug-in of Slurm": slurm_words} if PLUGIN.exists() else {}))
