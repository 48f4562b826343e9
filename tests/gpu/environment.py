"""The item `environment`: which device, driver and machine the answers come from."""
import json
import os
import platform
import re
import subprocess
import sys

import items
import tree as trees


def ask(check):
    command = [sys.executable, trees.HERE / "nvml.py"]
    return check.run("environment", command, 60)


def is_without_device(check):
    """Asked once, before everything: there is no driver, or it has no device."""
    ended = ask(check)
    return ended.status == 0 and json.loads(ended.out).get("absent", False)


def toolkit_version():
    home = trees.toolkit()
    if not home:
        return None
    said = subprocess.run([home / "bin/nvcc", "--version"], capture_output=True, text=True, check=False).stdout
    return (re.findall(r"release ([\d.]+)", said) or [None])[0]


def report(check):
    ended = ask(check)
    if ended.status != 0:
        return items.Outcome("failed", ended.tail(), ended.why())
    found = json.loads(ended.out)
    nvml = found.get("nvml", {})
    check.results.describe(gpu=found.get("name"), uuid=found.get("uuid"), driver=nvml.get("driver"), cuda=found.get("cuda"))
    figures = found | {"kernel": platform.release(), "libc": " ".join(platform.libc_ver()), "toolkit": toolkit_version(),
                       "python": platform.python_version(), "processors": os.cpu_count(),
                       "state_folder": str(check.tree.state.parent), "nodes": sorted(
                           name for name in os.listdir("/dev") if name.startswith("nvidia"))}
    if "problem" in found:
        return items.Outcome("skipped" if found.get("absent") else "failed", figures, found["problem"])
    return items.Outcome("ok", figures, "" if nvml.get("present") else "no NVML")


def tests(check, _):
    return [items.Test("environment", lambda: report(check))]


def rename(path, results, date):
    """The result file under its final name, which begins with the device's."""
    if not results.head["gpu"]:
        return path
    name = re.sub(r"[^A-Za-z0-9]+", "-", results.head["gpu"]).strip("-").lower()
    return path.rename(path.with_name(f"{name}-{date}.json"))
