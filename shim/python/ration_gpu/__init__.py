"""Ration from Python: the environment in which a process is limited, and what processes hold now.

    import subprocess
    import ration_gpu

    subprocess.run(["./train"], env=ration_gpu.limit_environment("40%", group="lab"), check=True)
    for process in ration_gpu.usage()["processes"]:
        print(process["program"], process["used_bytes"])

A limit holds in processes that are started with the environment, and in what they start; never in this one.
"""
from __future__ import annotations

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import typing
import warnings

__all__ = ["RationError", "command", "library", "limit_environment", "set_limit", "usage"]

_DISTRIBUTION = "ration-gpu"


class RationError(RuntimeError):
    """The installation is incomplete, or the command failed."""


def command() -> pathlib.Path:
    """The command `ration`: that of this package's wheel, else the first on PATH. RationError: there is none."""
    try:
        files = importlib.metadata.files(_DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [pathlib.Path(file.locate()) for file in files if file.name == "ration" and file.parent.name == "bin"]
    found.append(pathlib.Path(__file__).parent.parent / "bin" / "ration")  # pip install --target: its list says otherwise
    on_path = shutil.which("ration")
    for path in found + ([pathlib.Path(on_path)] if on_path else []):
        if os.access(path, os.X_OK):
            return path.resolve()
    raise RationError("no command `ration`: neither in this package's wheel nor on PATH")


def library() -> pathlib.Path:
    """libration.so, which a process preloads, of the same installation as command(). RationError: it has none."""
    prefix = command().parent.parent
    for folder in (prefix / "lib" / "ration", prefix / "lib", prefix / "libexec" / "ration"):  # the last is the wheel's
        if (folder / "libration.so").is_file():
            return folder / "libration.so"
    raise RationError(f"{prefix / 'lib' / 'libration.so'} is missing; is the installation complete?")


def _simulator() -> str:
    """The folder of the simulated driver, of the same installation as library()."""
    folder = library().parent
    return str(folder / "sim" if folder.name == "ration" else folder / "ration" / "sim")


def _run(*words: str, environment: typing.Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run([command(), *words], env=environment, stdin=subprocess.DEVNULL, capture_output=True,
                              encoding="utf-8", errors="surrogateescape", check=False)
    except OSError as error:
        raise RationError(f"{error.filename or 'ration'}: {error.strerror}") from error


def _without_fallback(lines: str) -> str:
    """The command's words without the limit that would hold in a process that starts nevertheless: here nothing starts. The
    verb is ours, not the caller's."""
    return re.sub(r"(?m)^ration: env: ", "ration: ", re.sub(r"; until it is corrected,[^\n]*", "", lines))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def limit_environment(limit: str | int | float | None = None, *, environment: typing.Mapping[str, str] | None = None,
                      sim: str | None = None, **settings: str | int | float | bool | None) -> dict[str, str]:
    """The environment of a process that runs under a limit, for subprocess, a container or a cluster's workers.

    limit: bytes, or as the option --limit takes it: "8GiB", "40%", "0=8GiB,1=50%". sim: simulated GPUs instead of real
    ones, as --sim takes them: "2x8GiB"; processes share them where the environment names one folder in SIMCUDA_MACHINE.
    settings: any other setting by its key in a settings file, such as group,
    group_limit, mode, reserve, log, stacks; None leaves one as it is. environment: what to start from, this process's if
    None; it is not changed. ValueError: a setting that does not exist or cannot be used as written, with the command's words; what
    it warns of is a UserWarning.
    RationError: no usable installation. The limit is of each process that has the environment, so of children, too; a group, with
    a group_limit, holds them together. RATION_DISABLE is taken back.
    """
    made = dict(os.environ if environment is None else environment)
    given = {key: _text(value) for key, value in {"limit": limit, **settings}.items() if value is not None}
    made.update({"RATION_" + key.upper(): value for key, value in given.items()})
    if made.get("RATION_DISABLE"):  # of this process, or of one before it
        made["RATION_DISABLE"] = "0"
    answer = _run("env", "--json", *(["--sim", sim] if sim is not None else []), environment=made)
    if answer.returncode != 0:
        raise ValueError(_without_fallback(answer.stderr.strip()) or f"ration env: exit status {answer.returncode}")
    document = json.loads(answer.stdout)
    known = {setting["key"]: setting["value"] for setting in document["settings"]}
    for key in given.keys() - known.keys():
        raise ValueError(f"unknown setting {key!r} (known: {', '.join(sorted(known))})")
    if "guarantee" in given and not known.get("group"):  # as `ration run` refuses it; the library would only warn
        raise ValueError("a guarantee (guarantee=) needs a group that leaves it to the process; write, for example: "
                         'group="lab", group_limit="50%", guarantee="2GiB"')
    for problem in document["problems"]:
        warnings.warn(problem["what"], stacklevel=2)
    preloaded = str(library())
    if set(preloaded) & set(" :"):
        raise RationError(f"{preloaded}: LD_PRELOAD cannot name a path with a blank or a colon; move the installation")
    others = [path for path in made.get("LD_PRELOAD", "").replace(" ", ":").split(":") if path]
    made["LD_PRELOAD"] = ":".join([preloaded] + [path for path in others if pathlib.PurePath(path).name != "libration.so"])
    if sim is not None:
        folder = _simulator()
        present = made.get("LD_LIBRARY_PATH", "")
        made["LD_LIBRARY_PATH"] = folder if not present else present if present.split(":")[0] == folder else f"{folder}:{present}"
        made["SIMCUDA_DEVICES"] = sim
        if not made.get("SIMCUDA_COSTS"):
            made.setdefault("SIMCUDA_CONTEXT_BYTES", "256MiB")  # as --sim does
    return made


def usage() -> dict[str, typing.Any]:
    """What each process under Ration holds of each device now, and each group: the document of `ration ps --json`.

    Its "processes", "groups" and "problems" are lists; sizes are bytes. RationError: the command failed.
    """
    answer = _run("ps", "--json")
    if answer.returncode not in (0, 1):  # 1: something could not be read, which "problems" names
        raise RationError(answer.stderr.strip() or f"ration ps: exit status {answer.returncode}")
    document: dict[str, typing.Any] = json.loads(answer.stdout)
    return document


def set_limit(target: str | int, limit: str | int | float) -> None:
    """Changes the limit of a running process, by its ID, or of a group, by its name, until it ends: `ration set`.

    limit: as in limit_environment, or "default", which takes a change back. RationError: no such process or group, or no such limit.
    """
    answer = _run("set", "--limit", _text(limit), "--", str(target))
    if answer.returncode != 0:
        raise RationError(answer.stderr.strip() or f"ration set: exit status {answer.returncode}")
