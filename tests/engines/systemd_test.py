#!/usr/bin/env python3
"""The drop-in of examples/systemd: systemd's own check of it, and programs that run with exactly what it sets.

The units are checked by `systemd-analyze`, which needs no running systemd; that a manager starts them is not shown here.
"""
import os
import pathlib
import re
import subprocess
import sys

from engines import EXAMPLES, GIB, HANG, LIBRARY, TESTS, expect, expect_that, main, needs, simulated

sys.path.insert(0, str(TESTS / "preload/group"))
from members import OBEY, REFUSED, Member  # noqa: E402

DROP_IN = (EXAMPLES / "systemd/ration.conf").read_text()
INSIDE = "/usr/lib/ration/"
DYNAMIC = 61234  # of the range that DynamicUser= takes users from; it has no name
SANDBOX = "DynamicUser=yes\nProtectSystem=strict\nProtectHome=yes\nPrivateTmp=yes\nNoNewPrivileges=yes\n"


def verify(folder, drop_in, name="serve.service", more=SANDBOX, content=None):
    """What systemd has to say about a unit with the drop-in. It ignores an unknown key, and says so on stderr."""
    units = pathlib.Path(folder) / "units"
    fragment = units / re.sub("@[^.]*", "@", f"{name}.d")
    fragment.mkdir(parents=True, exist_ok=True)
    unit = units / fragment.name.removesuffix(".d")
    unit.write_text(content or f"[Unit]\nDescription=A model server\n[Service]\nExecStart=/bin/true\n{more}")
    (fragment / "ration.conf").write_text(drop_in)
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", units / name], capture_output=True, text=True, timeout=HANG, check=False)
    return done.returncode, [line for line in done.stderr.splitlines() if "ration.conf" in line or not content]  # the rest is not ours


def drop_in_is_accepted(folder):
    expect("a service in a sandbox", verify(folder, DROP_IN), (0, []))
    expect("one of a template", verify(folder, DROP_IN, "model@7b.service"), (0, []))
    seen = 0
    for unit in sorted(pathlib.Path("/lib/systemd/system").glob("*.service")):
        if unit.is_symlink() or "\nExecStart=" not in unit.read_text():
            continue
        name = unit.name.replace("@.", "@1.")
        expect(f"{unit.name} of this machine", verify(folder, DROP_IN, name, content=unit.read_text())[1], [])
        seen += 1
        if seen == 10:
            break
    expect_that(f"{seen} units of this machine", seen > 0)
    print(f"accepted in {seen} units of this machine")


def wrong_ones_are_seen(folder):
    for right, wrong, wanted in (("AssertPathExists=", "AssertPathExist=", "Unknown key"), ("RuntimeDirectory=", "RuntimeFolder=", "Unknown key"),
                                 ("[Service]", "[Servic]", "Unknown section"), ("RATION_GROUP=%p", "RATION_GROUP=%Q", "resolve specifiers"),
                                 ("LD_PRELOAD=", "LD-PRELOAD=", "Invalid environment"), ("=ration-%p\n", "=/run/ration-%p\n", "RuntimeDirectory")):
        expect_that(f"{right} is in the drop-in", right in DROP_IN)
        said = verify(folder, DROP_IN.replace(right, wrong))[1]
        expect_that(f"{wrong}: {said}", any("ration.conf:" in line and wanted in line for line in said))


def nothing_starts_without_the_library(folder):
    asserts = re.findall(r"^AssertPathExists=(.*)$", DROP_IN, re.M)
    expect("what must exist", asserts, [f"{INSIDE}libration.so", f"{INSIDE}libration-core.so"])
    place = pathlib.Path(folder) / "lib"
    place.mkdir()
    for present in ([], ["libration.so"], ["libration.so", "libration-core.so"]):
        for name in present:
            (place / name).touch()
        done = subprocess.run(["systemd-analyze", "condition", *(f"AssertPathExists={place}/{path.removeprefix(INSIDE)}" for path in asserts)],
                              capture_output=True, text=True, check=False)
        expect(f"with {present}: {done.stderr}", done.returncode == 0, len(present) == 2)


def environment_of(folder, unit="serve"):
    """What a manager would make of the drop-in's lines, and the runtime directory."""
    runtime = pathlib.Path(folder) / "run"
    specifiers = {"%p": unit, "%t": str(runtime), "%%": "%"}
    lines = [re.sub("%.", lambda match: specifiers[match[0]], line) for line in re.findall(r"^\w+=.*$", DROP_IN, re.M)]
    (runtime / next(line for line in lines if line.startswith("RuntimeDirectory=")).split("=", 1)[1]).mkdir(parents=True, exist_ok=True)
    seen = dict(line.split("=", 2)[1:] for line in lines if line.startswith("Environment="))
    expect("preloaded", seen["LD_PRELOAD"], f"{INSIDE}libration.so")
    environment = simulated(folder)
    environment.pop("RATION_STATE_DIR")
    return environment | seen | {"LD_PRELOAD": str(LIBRARY)}


def ended(*members):
    for member in members:
        member.process.stdin.close()
        member.process.wait(timeout=HANG)
        member.process.stdout.close()


def processes_of_a_service_share_it(folder):
    """Half of the device for two processes together; another service has a half of its own."""
    members = [Member(OBEY, environment_of(folder, unit), pathlib.Path(folder)) for unit in ("serve", "serve", "train")]
    one, two, other = members
    one.do("init context=0")
    expect("size of the device", one.memory()[1], 8 * GIB)
    one.do("alloc=5000m")
    two.do("init context=0")
    expect("more than is left", two("alloc=3500m"), REFUSED)
    two.do("alloc=3000m")
    other.do("init context=0 alloc=7000m")
    state = pathlib.Path(folder) / "run/ration-serve/state"
    expect("mode of the books", state.stat().st_mode & 0o777, 0o700)
    ended(*members)


def a_dynamic_user_has_it(folder):
    if os.geteuid() != 0:
        print("left out: a process of another user needs root")
        return
    environment = environment_of(folder)
    for place in (pathlib.Path(folder), pathlib.Path(environment["SIMCUDA_MACHINE"])):
        place.chmod(0o777)
    os.chown(pathlib.Path(folder) / "run/ration-serve", DYNAMIC, DYNAMIC)
    member = Member(["setpriv", "--reuid", str(DYNAMIC), "--regid", str(DYNAMIC), "--clear-groups", "--no-new-privs", *OBEY], environment,
                    pathlib.Path(folder))
    member.do("init context=0")
    expect("size of the device", member.memory()[1], 8 * GIB)
    expect("more", member("alloc=8500m"), REFUSED)
    member.do("alloc=8000m")
    ended(member)


needs("systemd-analyze", "systemd")
main({"the drop-in is accepted": drop_in_is_accepted, "wrong ones are seen": wrong_ones_are_seen,
      "nothing starts without the library": nothing_starts_without_the_library,
      "processes of a service share it": processes_of_a_service_share_it, "a dynamic user has it": a_dynamic_user_has_it})
