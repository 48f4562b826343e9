"""What a program met under Ration that it did not meet natively, and the lists of differences that may be."""
import collections
import fnmatch
import pathlib
import re
from dataclasses import dataclass

CHUNK = 32 << 20  # of a pool of the simulated driver's
SLACK = 64 << 10  # the overhead of a pool: its slabs' first granules and its blocks' ends

# After these nothing that follows depends on the answer.
ASKS = ("info", "total", "range", "attribute", "read", "check", "free_null", "free_foreign", "free_again", "free_inside", "capture",
        "end_capture")
TAKES = ("alloc", "managed", "alloc_async", "alloc_from", "physical", "pitch")


@dataclass
class Difference:
    program: object
    index: int  # of the step; -1: at the end
    verb: str
    native: str
    under: str
    where: dict

    def signature(self):
        """Equal for differences of one kind."""
        return self.verb, self.native, re.sub(r"^\d+ more", "more", self.under)

    def __str__(self):
        step = self.program.steps[self.index] if self.index >= 0 else "end"
        return f"step {self.index} `{step}`: {self.native} natively, {self.under} under Ration"


@dataclass
class Line:
    verb: str
    native: str
    under: str
    where: list
    reason: str
    text: str
    matched: int = 0

    def matches(self, difference):
        found = (any(fnmatch.fnmatchcase(value, each) for each in pattern.split()) for value, pattern in
                 zip(difference.signature(), (self.verb, self.native, self.under)))
        waits = self.under.endswith("W") == difference.under.endswith("W")
        return waits and all(found) and all(holds(condition, difference.where) for condition in self.where)


def holds(condition, where):
    if condition.startswith("not-"):
        return not holds(condition[4:], where)
    if ">=" in condition:
        key, least = condition.split(">=")
        return int(where.get(key, 0)) >= int(least)
    if "=" in condition:
        key, wanted = condition.split("=")
        return str(where.get(key, "")) == wanted
    return bool(where.get(condition))


def read_list(path):
    lines = []
    for text in pathlib.Path(path).read_text().splitlines():
        if text and not text.startswith("#"):
            verb, native, under, where, reason = (part.strip() for part in text.split("|"))
            lines.append(Line(verb, native, under, where.split(), reason, text))
    return lines


def chunks(bytes_held):
    return (bytes_held + CHUNK - 1) // CHUNK * CHUNK


class State:
    """What a program has done natively so far, as far as the lists ask for it."""

    def __init__(self, program):
        self.program = program
        self.closed = {}  # flag -> context of the work that waits for it
        self.sizes, self.ordered, self.seen = {}, {}, set()  # ordered: block -> pool
        self.synchronous, self.most_held = set(), 0  # blocks of cuMemAlloc and cuMemAllocPitch, which mode async may pool
        self.kinds = set()  # of what was allocated since nothing was live: api, bytes and context
        self.disturbed = False  # work waited for a flag meanwhile, or a block was freed in stream order
        self.lingers = False  # with `late`: work that natively ended in a wait may still go on here
        self.queued = 0  # bytes of frees that may be queued behind such work
        self.current, self.streams, self.devices, self.owners = {}, {}, {}, {}  # by thread, stream, context, block
        settings = program.settings
        self.fixed = {"mode": settings.get("RATION_MODE", "pool"), "free": settings.get("RATION_FREE", "deferred"),
                      "preallocate": settings.get("RATION_PREALLOCATE", "true"), "devices": program.devices,
                      "late": "late" in program.header, "contexts": 0}

    def where(self, words=("", "")):
        wanted = int(words[3]) if words[1] in TAKES and len(words) > 3 else 0
        if words[1] == "pitch":
            wanted = (wanted + 511) // 512 * 512 * int(words[4])
        ordered = collections.Counter()
        for name in self.ordered.keys() & self.sizes.keys():
            ordered[self.ordered[name]] += self.sizes[name]
        held = sum(self.sizes.values()) + self.queued + sum(chunks(bytes_held) - bytes_held for bytes_held in ordered.values())
        limit = self.program.limit
        beside = held - self.pooled_bytes()
        own = self.owners.get(words[2] if len(words) > 2 else "", self.current.get(words[0]))
        alike = (not self.disturbed and not self.closed and wanted * 128 >= limit and words[1] == "alloc" and
                 len(self.devices) == 1 and self.kinds | {("alloc", wanted, own)} == {("alloc", wanted, own)})
        # The largest hole between N blocks has at least one part in N + 1 of what they leave. The first blocks may lie in
        # a small slab, beside the preallocated one.
        slabs = 2 if self.fixed["mode"] == "pool" and self.program.settings.get("RATION_PREALLOCATE_AFTER") != "0" else 1
        scattered = bool(self.sizes) and not alike and wanted * (len(self.sizes) + slabs) >= limit - held
        elsewhere = any(context != own and self.devices.get(context) == self.devices.get(own) for context in self.closed.values())
        return self.fixed | {f"after-{verb}": True for verb in self.seen} | {
            "api": words[4] if words[1] == "alloc" and len(words) > 4 else "", "busy": bool(self.closed),
            "elsewhere": elsewhere, "alike": alike, "uneven": wanted > 0 and limit % wanted * 64 > limit,
            "scattered": scattered, "fill": (held + wanted) * 100 // limit,
            "crowded": beside > 0 and chunks(self.most_held) + beside + chunks(wanted) > limit}

    def fill_the_limit(self, size):
        """Whether few blocks of this size do, nearly to the last byte: mode async may leave them to the driver."""
        limit = self.program.limit
        return size > 0 and limit // size <= 64 and limit % size <= limit // 64

    def pooled_bytes(self):
        sizes = (self.sizes[name] for name in self.synchronous & self.sizes.keys())
        return sum(size for size in sizes if not self.fill_the_limit(size))

    def step(self, words, answer):
        verb, code = words[1], answer.split(":")[0].rstrip("w!")
        if answer.endswith("w"):
            self.closed.clear()
            self.lingers = self.fixed["late"]
        if verb == "sync":
            self.lingers = False
        if code != "0":
            return
        self.seen.add(verb)
        self.follow_contexts(words)
        if verb in ("kernel", "host_function"):
            context = self.streams.get(words[2], self.current.get(words[0]))
            self.closed |= {word: context for word in words[3:] if word[0] == "f"}
        elif verb == "set":
            self.closed.pop(words[2], None)
        elif verb == "pitch":
            self.sizes[words[2]] = int(answer.split(":")[1].rstrip("w")) * int(words[4])
        elif verb in TAKES:
            self.sizes[words[2]] = int(words[3])
        elif verb in ("array", "mipmapped"):
            self.sizes[words[2]] = 4 * int(words[3]) * max(1, int(words[4]))
        elif verb in ("free", "free_async", "end_array"):
            ended = self.sizes.pop(words[2], 0)
            self.queued += ended if verb == "free_async" else 0
        if not self.closed:
            self.queued = 0
        disturbs = bool(self.closed) or self.lingers or verb == "free_async"
        self.disturbed |= disturbs
        if not self.sizes:
            self.kinds, self.disturbed = set(), disturbs
        elif verb in TAKES or verb in ("array", "mipmapped"):
            self.kinds.add((verb if verb != "alloc" or words[-1] != "old" else "old", self.sizes[words[2]],
                            self.current.get(words[0])))
        if verb in ("alloc_async", "alloc_from"):
            self.fixed["ordered"] = True
            self.ordered[words[2]] = words[4] if verb == "alloc_from" else "default"
        elif verb in TAKES:
            self.ordered.pop(words[2], None)
        if verb == "pitch" or verb == "alloc" and words[-1] != "old":
            self.synchronous.add(words[2])
            self.most_held = max(self.most_held, sum(self.sizes[name] for name in self.synchronous & self.sizes.keys()))
        elif verb in TAKES:
            self.synchronous.discard(words[2])

    def follow_contexts(self, words):
        verb, thread = words[1], words[0]
        if verb in ("retain", "create"):
            self.fixed["contexts"] += 1
            self.devices[words[2]] = words[3]
        if verb in ("create", "use", "push"):
            self.current[thread] = words[2]
        if verb == "stream":
            self.streams[words[2]] = self.current.get(thread)
        if verb in TAKES:
            self.owners[words[2]] = self.current.get(thread)


def simplified(verb, native, under):
    """The two answers without what may differ: a block's memory that a pool spends, calls that waited natively."""
    native, under = native.removesuffix("w"), under
    if verb == "info" and native.startswith("0:") and under.startswith("0:"):
        (free, total), (free_under, total_under) = (map(int, answer.rstrip("W")[2:].split("/")) for answer in (native, under))
        if total != total_under:
            return native, under
        change = "less" if free_under < free - SLACK else "more" if free_under > free + SLACK else "same"
        return "0:same", f"0:{change}" + ("W" if under.endswith("W") else "")
    return native, under


def destroys_its_own(native):
    """Natively a block of the program's has foreign bytes: work of its own ran on memory that it had freed."""
    return any(word.endswith("!") for word in native)


def differences(program, native, under):
    """The differences in order; what follows one that changes what the program has is not compared."""
    if destroys_its_own(native):
        return
    state = State(program)
    end = native.index("end") if "end" in native else len(native)
    if any(line.startswith("together") for line in program.header):
        yield from together(program, native, under)
        return
    for index, answer in enumerate(native[:end]):
        words = program.steps[index].split()
        verb = words[1] if words[1] != "try" else f"try_{words[2]}"
        seen = under[index] if index < len(under) else "nothing"
        if seen.startswith(("hangs", "died", "init", "end")):
            yield Difference(program, index, verb, answer, seen, state.where(words))
            return
        if (seen == "-") != (answer == "-") and (answer == "-" or "late" in program.header):
            return  # not freed while work on it is queued, which natively, or with `late` here, takes longer
        if "?" in (answer, seen) and seen.endswith("W"):
            return  # the flags that it released are not released natively
        if "?" not in (answer, seen):
            before, after = simplified(verb, answer, seen)
            if before != after:
                yield Difference(program, index, verb, before, after, state.where(words))
                refused = before.split(":")[0] != "0" and after.split(":")[0].rstrip("W!") != "0"
                if after.endswith("W") or not (verb in ASKS or verb.startswith("try_") or refused):
                    return
        state.step(words, answer)
    yield from at_the_end(program, native, under, state.where())


def at_the_end(program, native, under, where):
    """Blocks with another's bytes, and a device that held more than the limit."""
    if "end" not in under:
        yield Difference(program, -1, "end", "end", " ".join(under[-2:]), where)
        return
    blocks, held = [], []
    for word in under[under.index("end") + 1:]:
        (blocks if word.startswith("b") else held).append(word)
    if blocks:
        yield Difference(program, -1, "end", "end", " ".join(blocks), where)
    more = max(map(int, held)) - program.limit
    if more > 0:
        yield Difference(program, -1, "held", "limit", f"{more} more", where | {"rounded": more <= rounding(program)})


def rounding(program):
    """The most that the driver adds to what Ration charges: managed memory is whole pages, and the last block of a limit
    may be charged what is left."""
    steps = [step.split() for step in program.steps]
    return 511 + sum(4096 - 512 for step in steps if step[1] == "managed")


def together(program, native, under):
    words = [step.split() for step in program.steps]
    contexts = {step[2] for step in words if step[1] == "create"} | {step[3] for step in words if step[1] == "retain"}
    where = (State(program).fixed | {f"after-{step[1]}": True for step in words}
             | {"together": True, "contexts": len(contexts),
                "sizes": len({tuple(step[3:5]) if step[1] == "pitch" else step[3] for step in words if step[1] in TAKES})})
    if native[0] == "end":
        for wrong in under[:under.index("end")] if "end" in under else under:
            yield Difference(program, -1, "together", "0", wrong.partition(":")[2] or wrong, where)
        yield from at_the_end(program, native, under, where)
