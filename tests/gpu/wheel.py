"""The item `wheel`: the wheel that scripts/package.sh made, installed into a fresh environment without network, limits a
program there; its Python package sees that."""
import json
import pathlib
import platform
import sys

import items
import members
import tree as trees

FOLDER = "wheel"  # of the pack
LIMIT, BLOCK = 2 * trees.GIB, 64 * trees.MIB
SECONDS = 90
ASKED = "import json, ration_gpu; print(json.dumps([str(ration_gpu.command()), ration_gpu.usage()['processes']]))"


def built(folder):
    """The newest wheel of this machine, None without one."""
    found = folder.glob(f"ration_gpu-*_{platform.machine()}.whl")
    return max(found, key=lambda file: file.stat().st_mtime, default=None)


def found(check, stated):
    file = stated or built(check.tree.path(FOLDER)) or built(trees.SOURCE / "dist")
    if not file:
        raise items.Skip("no wheel: scripts/package.sh makes one, --wheel names one")
    return file.resolve()


def install(check, file):
    """The folder of the new environment."""
    home = check.tree.scratch / "venv"
    made = check.run("wheel.venv", [sys.executable, "-m", "venv", home], SECONDS)
    if made.status != 0:
        raise items.Skip(f"this Python makes no environments: {made.why()}")
    pip = [home / "bin/python", "-m", "pip", "--disable-pip-version-check", "install", "--no-index", "--no-deps", file]
    done = check.run("wheel.install", pip, SECONDS)
    if done.status != 0:
        raise RuntimeError(f"pip install: {done.why()}")
    return home


def libraries_of(pid):
    """The files of Ration that are mapped there."""
    maps = pathlib.Path(f"/proc/{pid}/maps").read_text(encoding="utf-8").splitlines()
    return {line.split()[-1] for line in maps if "/libration" in line}


def report(check, stated):
    if not check.tree.has(members.PROGRAM):
        raise items.Skip(f"{members.PROGRAM} is not built")
    file = found(check, stated)
    home = install(check, file)
    line = [home / "bin/ration", "run", "--limit", str(LIMIT), "--", check.tree.path(members.PROGRAM), "fill"]
    with members.Lines(check, line) as member:
        pid, code, held = (member.value(name) for name in ("pid", "code", "held"))
        mapped = libraries_of(pid)
        asked = check.run("wheel.python", [home / "bin/python", "-c", ASKED], SECONDS)
        status = member.finish()
    command, rows = json.loads(asked.out) if asked.status == 0 else (asked.why(), [])
    row = members.row_of({"processes": rows}, pid)
    figures = {"wheel": file.name, "code": code, "held": held, "libraries": sorted(mapped), "command": command, "row": row}
    return items.judged(figures, refused=code == 2, limited=LIMIT - BLOCK <= held <= LIMIT,
                        its_own_libraries=bool(mapped) and all(name.startswith(f"{home.resolve()}/") for name in mapped),
                        its_own_command=command == str(home.resolve() / "bin/ration"),
                        seen_from_Python=row is not None and (row["limit"], row["used_bytes"]) == (LIMIT, held), bytes_of_the_member=status == 0)


def tests(check, arguments):
    return [items.Test("wheel", lambda: report(check, arguments.wheel))]
