#!/usr/bin/env python3
"""`ration cdi` writes a specification that container engines take (CNCF's Container Device Interface, SPEC.md), and the files
of `--enforce`. tests/engines/podman_test.py has an engine read it."""
import json
import pathlib
import re
import stat
import subprocess

from harness import BUILD, HANG, clean_environment, expect, expect_that, main

RATION = BUILD / "bin/ration"


def cdi(*words, status=0):
    done = subprocess.run([RATION, "cdi", *map(str, words)], env=clean_environment(), stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, timeout=HANG, check=False, umask=0o077)
    expect(f"status of {words}, stderr {done.stderr!r}", done.returncode, status)
    return done


def of(*words):
    return json.loads(cdi(*words).stdout)


def edits(document, name):
    """What a container gets that asks for one device."""
    device, = [each["containerEdits"] for each in document["devices"] if each["name"] == name]
    common = document["containerEdits"]
    return common.get("env", []) + device.get("env", []), common.get("mounts", []) + device.get("mounts", [])


def form(_):
    document = of("25%", "0.5", "8GiB", "small=2GiB")
    expect("keys", sorted(document), ["cdiVersion", "containerEdits", "devices", "kind"])
    expect("kind", (document["cdiVersion"], document["kind"]), ("0.5.0", "ration.dev/share"))
    expect("names", [each["name"] for each in document["devices"]], ["25pct", "0.5", "8GiB", "small"])
    for name, size in (("25pct", "25%"), ("0.5", "0.5"), ("8GiB", "8GiB"), ("small", "2GiB")):
        environment, mounts = edits(document, name)
        expect(name, sorted(environment), ["LD_PRELOAD=/usr/lib/ration/libration.so", f"RATION_CONTAINER_LIMIT={size}"])
        expect("places", [each["containerPath"] for each in mounts],
               ["/usr/lib/ration/libration.so", "/usr/lib/ration/libration-core.so"])
        for mount in mounts:
            expect_that(f"{mount}", pathlib.Path(mount["hostPath"]).is_file() and "ro" in mount["options"])


def groups(folder):
    state = pathlib.Path(folder) / "a/state"
    environment, mounts = edits(of("1GiB", "--group", "lab", "--group-limit", "50%", "--state-dir", state), "1GiB")
    expect_that(f"{environment}", {"RATION_GROUP=lab", "RATION_GROUP_LIMIT=50%", "RATION_STATE_DIR=/run/ration"} <= set(environment))
    shared, = [each for each in mounts if each["containerPath"] == "/run/ration"]
    expect("the folder", (shared["hostPath"], shared["options"][0]), (str(state), "rw"))
    expect("its mode", stat.S_IMODE(state.stat().st_mode), 0o700)


def enforced(folder):
    place, state = pathlib.Path(folder) / "enforced", pathlib.Path(folder) / "state"
    environment, mounts = edits(of("25%", "half=50%", "--enforce", place, "--group", "lab", "--group-limit", "6GiB",
                                   "--state-dir", state), "half")
    expect("variables, which an image could set", environment, [])
    inside = {each["containerPath"]: each for each in mounts}
    preload = pathlib.Path(inside["/etc/ld.so.preload"]["hostPath"])
    expect("what is preloaded", preload.read_text(), "/usr/lib/ration/libration.so\n")
    settings = pathlib.Path(inside["/etc/ration"]["hostPath"]) / "config.json"
    expect("settings", json.loads(settings.read_text()),
           {"container_limit": "50%", "group": "lab", "group_limit": "6GiB", "state_dir": "/run/ration",
            "locked": ["container_limit", "group", "group_limit"]})
    expect_that("read-only", all(inside[path]["options"][0] == "ro" for path in ("/etc/ld.so.preload", "/etc/ration")))
    expect("modes, whatever the umask", {stat.S_IMODE(path.stat().st_mode) for path in (place, settings.parent)}, {0o755})
    expect_that("RATION_DISABLE is refused", (settings.parent / "enforced").is_file())
    checked = subprocess.run([RATION, "env", "--check", settings], capture_output=True, text=True, check=False)
    expect("as `ration env --check` sees them", (checked.returncode, checked.stderr), (0, ""))


def file(folder):
    """The whole file or none."""
    path = pathlib.Path(folder) / "ration.json"
    expect("stdout", cdi("25%", "-o", path).stdout, "")
    expect("the file", json.loads(path.read_text()), of("25%"))
    expect("the file - is stdout", json.loads(cdi("25%", "-o", "-").stdout), of("25%"))
    said = cdi("25%", "-o", pathlib.Path(folder) / "none/ration.json", status=125).stderr
    expect_that(f"{said}", re.fullmatch(r"ration: cdi: cannot write \".*none/ration.json\": No such file or directory\n", said))


def mistakes(folder):
    for words, said in ((["25x"], '"25x": "x" is not a unit'), (["1"], "a bare 1 could be"), (["=2GiB"], "is not a name for a device"),
                        (["a%=2GiB"], '"a%" is not a name for a device'), ([".a=2GiB"], "is not a name for a device"),
                        (["25%", "25pct=2GiB"], 'two shares are named "25pct"'), ([], "SHARE is required"),
                        (["1GiB", "--group-limit", "2GiB"], "--group-limit needs --group"),
                        (["1GiB", "--group", "g"], "--group needs --state-dir"),
                        (["1GiB", "--group", "a b", "--state-dir", folder], '--group a b: a group name is'),
                        (["1GiB", "--group", "g", "--group-limit", "x", "--state-dir", folder], '--group-limit x: '),
                        (["1GiB", "--state-dir", "/dev/null"], '"/dev/null" is not a folder'),
                        (["1GiB", "--enforce", f"{folder}/none/x/"], "cannot create"),
                        (["1GiB", "--enforce", "/dev/null/x"], "cannot create")):
        err = cdi(*words, status=125 if "cannot" in said else 2).stderr
        expect_that(f"{words}: {err}", said in err and err.count("\n") == 1)


main({"form": form, "groups": groups, "enforced": enforced, "file": file, "mistakes": mistakes})
