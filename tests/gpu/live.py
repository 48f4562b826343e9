"""The item `live`: what changes while members run. Limits that are set, guarantees, memory that one member gives another, jobs
that wait for each other."""
import json
import time

import items
import members
import tree as trees

MIB, GIB = trees.MIB, trees.GIB
ON_DEMAND = {"RATION_PREALLOCATE": "false"}
POOLS = ("vmm", "slab", "async", "direct")
REFUSED, NOT_STARTED = 2, 125  # the driver's code; the exit status of `ration run`
JOB, ROOM_FOR_ONE = "60%", 0.65  # of the device: a job, two of which do not fit; what must be free of it for one


class Obeying(members.Member):
    """A member that is driven step by step."""

    def __init__(self, check, variant, options=(), limit=None, **settings):
        super().__init__(check, ["obey"], variant, options, limit, **(ON_DEMAND | settings))

    def take(self, size):
        """The driver's code."""
        self.send(f"take {size}\n")
        return self.value("code")

    def drop(self):
        self.send("drop\n")
        return self.value("held")

    def memory(self):
        """(free, total) as the program sees them."""
        self.send("memory\n")
        return self.value("free"), self.value("total")


def command(check, name, *words):
    return check.run(name, [check.tree.path("bin/ration"), *words], 30)


def document(check, name, *words):
    """(exit status, the JSON that a verb prints)."""
    ended = command(check, name, *words, "--json")
    try:
        return ended.status, json.loads(ended.out)
    except ValueError:
        raise RuntimeError(f"ration {' '.join(map(str, words))}: {ended.why()}") from None


def in_group(name, limit, *more):
    return ("--group", name, "--group-limit", str(limit), *more)


def group_row(seen, name):
    return next(row for row in seen["groups"] if row["name"] == name)


def set_group(check, variant):
    """The limit of a group is raised, lowered below what is held, and taken back."""
    name = f"check-set-{variant}"
    options = in_group(name, 3 * GIB)

    def order(limit):
        return document(check, f"live.set_group.{variant}", "set", name, "--limit", limit)[1]
    with Obeying(check, variant, options) as one, Obeying(check, variant, options) as other:
        stated = [one.take(GIB), other.take(GIB), one.take(2 * GIB)]
        order("5GiB")
        raised = [one.take(2 * GIB), one.memory()[1]]
        told = order("2GiB")
        lowered = [other.take(256 * MIB), *other.memory()]
        shown = group_row(members.usage(check), name)
        order("default")
        back = other.memory()[1]
        statuses = [other.finish(), one.finish()]
    figures = {"stated": stated, "raised": raised, "told": told, "lowered": lowered, "shown": shown, "back": back}
    return items.judged(figures, the_stated_limit=stated == [0, 0, REFUSED], a_higher_one=raised == [0, 5 * GIB],
                        what_it_tells=[row["limit"] for row in told["devices"]] == [2 * GIB],
                        a_lower_one=lowered == [REFUSED, 0, 2 * GIB], what_ps_shows=shown["limit"] == 2 * GIB,
                        the_stated_one_again=back == 3 * GIB, bytes_of_the_members=statuses == [0, 0])


def set_process(check, variant):
    """The same of the limit of one process. In mode direct it takes note with its next call only."""
    def order(limit):
        return document(check, f"live.set_process.{variant}", "set", member.pid, "--limit", limit)[1]
    with Obeying(check, variant, limit="2GiB") as member:
        stated = [member.take(GIB), member.take(2 * GIB)]
        told = [order("4GiB")]
        raised = [member.take(2 * GIB), member.memory()[1]]
        told.append(order("1GiB"))
        lowered = member.take(64 * MIB)
        shown = members.row_of(members.usage(check), member.pid)
        status = member.finish()
    figures = {"stated": stated, "told": told, "raised": raised, "lowered": lowered, "shown": shown}
    wanted = "pending" if variant == "direct" else "done"
    return items.judged(figures, the_stated_limit=stated == [0, REFUSED], a_higher_one=raised == [0, 4 * GIB],
                        a_lower_one=lowered == REFUSED, what_it_tells=[one["outcome"] for one in told] == [wanted] * 2,
                        what_ps_shows=shown["limit"] == GIB, bytes_of_the_member=status == 0)


def guarantee(check, variant):
    """What is guaranteed to one member is obtainable by it alone; a guarantee that does not fit starts nothing."""
    name, limit = f"check-guarantee-{variant}", 4 * GIB
    late_options = in_group(name, limit, "--guarantee", "3GiB")
    with Obeying(check, variant, in_group(name, limit, "--guarantee", "2GiB")) as one, \
            Obeying(check, variant, in_group(name, limit)) as other:
        codes = {"beyond": other.take(3 * GIB), "beside": other.take(1792 * MIB)}
        late = command(check, f"live.guarantee.{variant}.late", "run", *late_options, "--", "/bin/echo", "began")
        codes["own"] = one.take(1792 * MIB)
        shown = group_row(members.usage(check), name)
        statuses = [other.finish(), one.finish()]
    figures = codes | {"late": late.err.splitlines()[-1:], "shown": shown}
    return items.judged(figures, beyond_what_is_left=codes["beyond"] == REFUSED, beside_it=codes["beside"] == 0,
                        its_own=codes["own"] == 0, guaranteed=shown["guaranteed_bytes"] == 2 * GIB,
                        one_that_does_not_fit=late.status == NOT_STARTED and "cannot guarantee" in late.err and not late.out,
                        within_the_limit=shown["reserved_bytes"] <= shown["claimed_bytes"] <= limit, bytes_of_the_members=statuses == [0, 0])


def given(check, variant):
    """A member that holds much of its group, and uses nothing of it, gives it to one that asks, and gets it back."""
    name, limit = f"check-given-{variant}", 4 * GIB
    settings = {"RATION_PREALLOCATE": str(limit), "RATION_PREALLOCATE_AFTER": "0", "RATION_HEADROOM": "0"}
    options = in_group(name, limit)
    with Obeying(check, variant, options, **settings) as one:
        codes = [one.take(2 * GIB)]
        one.drop()
        before = members.row_of(members.usage(check), one.pid)["reserved_bytes"]
        begun = time.monotonic()
        with members.Member(check, ["take", str(3 * GIB)], variant, options, **ON_DEMAND) as other:
            codes.append(other.value("code"))
            granted_ms = round((time.monotonic() - begun) * 1000, 1)
            after = group_row(members.usage(check), name)
            statuses = [other.finish()]
        codes.append(one.take(2 * GIB))
        statuses.append(one.finish())
    figures = {"codes": codes, "before": before, "after": after, "granted_ms": granted_ms}
    return items.judged(figures, it_has_much=codes[0] == 0 and before >= 2 * GIB, it_gives=codes[1] == 0, it_gets_it_back=codes[2] == 0,
                        within_the_limit=after["reserved_bytes"] <= limit, bytes_of_the_members=statuses == [0, 0])


def await_words(job, words):
    end = time.monotonic() + members.SECONDS
    while words not in job.errors():
        if job.has_said():
            raise RuntimeError("it began at once")
        if job.process.poll() is not None or time.monotonic() > end:
            raise RuntimeError(f"it does not say {words!r}: {job.errors()!r}")
        time.sleep(0.01)


def wait(check, what, options):
    """A second job starts when the first has ended; one that does not want to wait so long does not start."""
    with members.Device(check) as device:
        seen = device.settled()
    if what == "device" and seen["free"] < ROOM_FOR_ONE * seen["total"]:
        raise items.Skip("another program holds much of the device")
    hold = ["hold", str(GIB)]
    waiting = ("--wait", *options)
    line, more = check.tree.under("vmm", [check.tree.path(members.PROGRAM), *hold], options=waiting)
    with members.Member(check, hold, "vmm", waiting, **ON_DEMAND) as first:
        first.value("held")
        with members.Lines(check, line, **(more | ON_DEMAND)) as second:
            await_words(second, "waits for room")
            queue = [row for row in members.usage(check)["processes"] if row["waiting_bytes"]]
            hasty = command(check, f"live.wait.{what}", "run", *options, "--wait=200ms", "--", "/bin/echo", "began")
            early = second.has_said()
            statuses, ended = [first.finish()], time.monotonic()
            second.value("pid")
            started_ms, code = round((time.monotonic() - ended) * 1000, 1), second.value("code")
            statuses.append(second.finish())
    figures = {"waiting": queue, "hasty": hasty.err.splitlines()[-1:], "started_ms": started_ms, "code": code}
    in_vain = hasty.status == NOT_STARTED and "no room within 200ms" in hasty.err and not hasty.out
    return items.judged(figures, it_waits=not early, what_ps_shows=len(queue) == 1, one_in_a_hurry_does_not_start=in_vain,
                        it_has_its_memory=code == 0, bytes_of_the_members=statuses == [0, 0])


def tests(check, _):
    jobs = {"device": ("--limit", JOB), "group": in_group("check-wait", 8 * GIB, "--guarantee", "5GiB")}
    made = [items.Test(f"live.{body.__name__}.{variant}", lambda body=body, variant=variant: body(check, variant))
            for body, variants in ((set_group, POOLS), (guarantee, POOLS), (given, POOLS[:3]), (set_process, ("vmm", "direct")))
            for variant in variants]
    return made + [items.Test(f"live.wait.{what}", lambda what=what, options=options: wait(check, what, options))
                   for what, options in jobs.items()]
