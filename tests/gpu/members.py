"""Items about several processes: `kill` (memory of a killed member), `nvml` (its figure against ours), `shares` (groups, a
nearly full device, and processes that size themselves by what is free). All use programs/member.cc."""
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time

import items
import runs
import tree as trees

PROGRAM = "tests/gpu/programs/member"
NVML = trees.HERE / "nvml.py"
SECONDS = 30
GIB = trees.GIB
MODES = (trees.NATIVE, "slab", "vmm", "async", "direct")


class Lines:
    """A process that talks in lines; killed with its session at the end of the `with` block."""

    def __init__(self, check, command, **settings):
        self.check = check
        self._errors = tempfile.TemporaryFile()
        self.process = runs.start(command, check.tree.environment(**settings), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=self._errors)
        self._rest = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.finish()

    def line(self, seconds=SECONDS):
        end = time.monotonic() + self.check.clock.at_most(seconds)
        while b"\n" not in self._rest:
            if not select.select([self.process.stdout], [], [], max(0, end - time.monotonic()))[0]:
                raise RuntimeError(f"no line within {seconds} s; so far {self._rest!r}; {self.errors()}")
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                raise RuntimeError(f"ended with {self.process.wait()}; {self.errors()}")
            self._rest += more
        first, _, self._rest = self._rest.partition(b"\n")
        return first.decode()

    def has_said(self):
        """Whether it has written what was not read yet."""
        if select.select([self.process.stdout], [], [], 0)[0]:
            self._rest += os.read(self.process.stdout.fileno(), 65536)
        return bool(self._rest)

    def value(self, name):
        """The number after `name=`, in the next line that has it."""
        while True:
            line = self.line()
            if line.startswith(f"{name}="):
                return int(line.partition("=")[2])

    def errors(self):
        """The end of what it wrote on stderr."""
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace")[-600:]

    def send(self, text="\n"):
        self.process.stdin.write(text.encode())
        self.process.stdin.flush()

    def end_input(self):
        if not self.process.stdin.closed:
            self.process.stdin.close()

    def finish(self):
        """Its exit status, None where it had to be killed."""
        self.end_input()
        status = runs.finish(self.process, 20) if self.process.returncode is None else self.process.returncode
        self.process.stdout.close()
        self._errors.close()
        return status


class Member(Lines):
    def __init__(self, check, arguments, variant=trees.NATIVE, options=(), limit=None, **settings):
        if not check.tree.has(PROGRAM):
            raise items.Skip(f"{PROGRAM} is not built")
        command, more = check.tree.under(variant, [check.tree.path(PROGRAM), *arguments], limit, options=options)
        super().__init__(check, command, **(more | settings))
        self.pid = self.value("pid")  # of the program itself, not of `ration run`


class Device(Lines):
    """NVML, asked in a process of its own."""

    def __init__(self, check):
        super().__init__(check, [sys.executable, NVML, "--serve"])

    def ask(self):
        self.send()
        return json.loads(self.line())

    def settled(self, seconds=3):
        """The same, once two answers in a row agree: an earlier process's memory returns after its end."""
        end, last, seen = time.monotonic() + seconds, None, self.ask()
        while last != seen and time.monotonic() < end:
            time.sleep(0.1)
            last, seen = seen, self.ask()
        return seen


def usage(check):
    ended = check.run("ps", [check.tree.path("bin/ration"), "ps", "--json"], 20)
    if ended.status != 0:
        raise RuntimeError(f"ration ps: {ended.why()}")
    return json.loads(ended.out)


def row_of(seen, pid):
    rows = [row for row in seen["processes"] if row["pid"] == pid]
    return rows[0] if rows else None


def await_fall(device, below, seconds=10):
    """Milliseconds until the device's used bytes are below; None where they stay above."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if device.ask()["used"] < below:
            return round((time.monotonic() - begun) * 1000, 1)
        time.sleep(0.002)
    return None


def kill(check, variant):
    """A member that holds 8 GiB of a group's 12 is killed; another one waits for them."""
    options = ("--group", f"check-kill-{variant}", "--group-limit", "12GiB")
    settings = {"RATION_PREALLOCATE": "false"}
    with Device(check) as device:
        idle = device.settled()["used"]
        with Member(check, ["hold", str(8 * GIB)], variant, options, **settings) as first:
            if first.value("code"):
                raise RuntimeError("the first member did not get its 8 GiB")
            first.value("held")
            before = usage(check)
            with Member(check, ["take", str(8 * GIB)], variant, options, **settings) as second:
                refused = second.value("refused")
                full = device.ask()["used"]
                begun = time.monotonic()
                os.kill(first.pid, signal.SIGKILL)
                code = second.value("code")
                granted_ms = round((time.monotonic() - begun) * 1000, 1)
                second.value("held")
                after = usage(check)
                status = second.finish()
        gone_ms = await_fall(device, idle + GIB)
    group = [row for row in after["groups"] if row["name"] == options[1]]
    mine = row_of(after, second.pid)
    figures = {"refused_before": refused, "granted_ms": granted_ms, "idle": idle, "full": full, "gone_ms_after_exit": gone_ms,
               "before": before["processes"], "after": after["processes"], "groups": group}
    holds = (code == 0 and refused == 2 and status == 0 and row_of(after, first.pid) is None and mine is not None and
             8 * GIB <= mine["reserved_bytes"] <= 12 * GIB and len(group) == 1 and group[0]["reserved_bytes"] == mine["reserved_bytes"])
    return items.Outcome("ok" if holds else "failed", figures, "" if holds else f"code {code}, status {status}")


def kill_natively(check):
    """How long after a SIGKILL the device has 8 GiB back."""
    with Device(check) as device, Member(check, ["hold", str(8 * GIB)]) as member:
        member.value("held")
        full = device.ask()["used"]
        os.kill(member.pid, signal.SIGKILL)
        back_ms = await_fall(device, full - 7 * GIB)
    return items.Outcome("ok" if back_ms is not None else "failed", {"full": full, "back_ms": back_ms})


def kill_tests(check, _):
    made = [items.Test("kill.native", lambda: kill_natively(check))]
    return made + [items.Test(f"kill.{variant}", lambda variant=variant: kill(check, variant))
                   for variant in ("slab", "vmm", "direct")]


def nvml(check, variant):
    """NVML's figure of a process that holds 4 GiB, and the device's; what is beyond our books is the driver's own."""
    with Device(check) as device:
        idle = device.settled()
        options = () if variant == trees.NATIVE else ("--group", f"check-nvml-{variant}")
        with Member(check, ["hold", str(4 * GIB)], variant, options, limit="6GiB") as member:
            member.value("held")
            during = device.ask()
            row = None if variant == trees.NATIVE else row_of(usage(check), member.pid)
            new = {pid: taken for pid, taken in during["processes"].items() if pid not in idle["processes"]}
            # In a container NVML names processes by the host's ids, or lists none.
            listed = new.get(str(member.pid), next(iter(new.values())) if len(new) == 1 else None)
    reserved = row["reserved_bytes"] if row else 4 * GIB
    figures = {"device_delta": during["used"] - idle["used"], "nvml_process": listed, "listed": new, "pid": member.pid,
               "books": row, "overhead_by_device": during["used"] - idle["used"] - reserved,
               "overhead_by_process": listed - reserved if listed is not None else None}
    has_books = variant == trees.NATIVE or row is not None
    holds = has_books and 0 <= figures["overhead_by_device"] < 2 * GIB
    return items.Outcome("ok" if holds else "failed", figures, "" if holds else "the books do not explain the device's figure")


def nvml_tests(check, _):
    return [items.Test(f"nvml.{variant}", lambda variant=variant: nvml(check, variant))
            for variant in MODES]


def fill_group(check, variant):
    """Two processes of one group each take all that they get."""
    name, limit = f"check-fill-{variant}", 6 * GIB
    options = ("--group", name, "--group-limit", str(limit))
    settings = {"RATION_PREALLOCATE": "false"}
    with Member(check, ["fill"], variant, options, limit="4GiB", **settings) as one:
        codes, held = [one.value("code")], [one.value("held")]
        with Member(check, ["fill"], variant, options, **settings) as other:
            codes.append(other.value("code"))
            held.append(other.value("held"))
            seen = usage(check)
            statuses = [other.finish(), one.finish()]
    group = [row for row in seen["groups"] if row["name"] == name]
    figures = {"held": held, "codes": codes, "statuses": statuses, "group": group}
    holds = (codes == [2, 2] and statuses == [0, 0] and sum(held) <= limit and sum(held) >= limit - 256 * trees.MIB and
             len(group) == 1 and group[0]["reserved_bytes"] <= limit)
    return items.Outcome("ok" if holds else "failed", figures)


def nearly_full(check, variant):
    """One process with 90 % of the device."""
    with Member(check, ["hold", "90%"], variant) as member:
        code, held = member.value("code"), member.value("held")
        status = member.finish()
    return items.Outcome("ok" if (code, status) == (0, 0) else "failed", {"code": code, "held": held, "status": status})


def by_free(check, variant, limit):
    """Two processes, started at the same moment, each take 90 % of what they see as free."""
    with Member(check, ["share", "90%"], variant, limit=limit) as one, \
            Member(check, ["share", "90%"], variant, limit=limit) as other:
        pair = (one, other)
        free = [member.value("free") for member in pair]
        total = [member.value("total") for member in pair]
        for member in pair:
            member.send()
        codes, held = [member.value("code") for member in pair], [member.value("held") for member in pair]
        statuses = [member.finish() for member in pair]
    figures = {"free": free, "total": total, "codes": codes, "held": held, "statuses": statuses}
    if variant == trees.NATIVE:
        return items.Outcome("ok", figures, "both got it" if codes == [0, 0] else "as expected, one did not get it")
    return items.Outcome("ok" if (codes, statuses) == ([0, 0], [0, 0]) else "failed", figures)


def share_tests(check, _):
    made = [items.Test(f"shares.group.{variant}", lambda variant=variant: fill_group(check, variant)) for variant in MODES[1:]]
    for variant in MODES:
        made.append(items.Test(f"shares.most.{variant}", lambda variant=variant: nearly_full(check, variant)))
        made.append(items.Test(f"shares.by_free.{variant}", lambda variant=variant: by_free(check, variant, "45%")))
    return made
