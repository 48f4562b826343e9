#!/usr/bin/env python3
"""`ration replay` tells from a log what `ration find-min` finds by running the program."""
import json
import pathlib
import random
import subprocess

from harness import BUILD, GIB, HANG, MIB, PROGRAMS, command_environment, expect, expect_that, main, read_log

RATION = BUILD / "bin/ration"
EXAMPLES = BUILD / "examples"
# Fails where an op of steps does.
STRICT = ["sh", "-c", '! "$@" | grep -qv " 0$"', "sh", PROGRAMS / "steps", "init", "context=0"]
TRAINING = [f"alloc={size}m" for size in (40, 24, 24, 8)] + ["alloc=3333333", "alloc=9m", "alloc=17000000", "free=5", "alloc=200000",
                                                          "free=6", "free=4", "alloc=25m", "alloc=12345678"]
COMMANDS = {"add_vectors": [EXAMPLES / "planted_fault/add_vectors"],
            "worker": ["sh", "-c", 'echo 20 | "$1" anna | grep -q granted', "sh", EXAMPLES / "shared_gpu/worker"],
            "like training": [*STRICT, *TRAINING],
            "managed memory": [*STRICT, "alloc=100m", "managed=50m", "alloc=30m", "free=0", "alloc=60m", "alloc=20m", "managed=30m"],
            "two contexts": [*STRICT, "alloc=100m", "alloc=40m", "free=0", "context=0", "alloc=70m", "alloc=30m"]}


def ration(*words, status=0):
    done = subprocess.run([RATION, *map(str, words)], env=command_environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=HANG, check=False)
    expect(f"status of {words}, stderr {done.stderr!r}", done.returncode, status)
    return done


def logged(folder, command, *options):
    log = pathlib.Path(folder) / "run.jsonl"
    ration("run", "--sim", "4GiB", "--log", log, *options, "--", *command)
    return log


def last_number(done):
    return int(done.stdout.splitlines()[-1].removeprefix("min_limit="))


def agrees(command):
    def case(folder):
        replayed = last_number(ration("replay", logged(folder, command), "--find-min"))
        found = last_number(ration("find-min", "--sim", "4GiB", "--", *command))
        print(f"replay {replayed}, find-min {found}: {100 * (replayed - found) / found:+.2f} %")
        spare = 16 * MIB if list(map(str, command)).count("context=0") > 1 else 0  # rounded up for several pools
        expect_that(f"{replayed} is {found} to 1 %", abs(replayed - spare - found) <= found / 100)
    return case


def stops(folder):
    """At the record whose request does not fit; not where the smallest limit is given."""
    log = logged(folder, COMMANDS["like training"])
    smallest = last_number(ration("replay", log, "--find-min"))
    ration("replay", log, "--limit", smallest)
    less = smallest - 4 * MIB
    text = ration("replay", log, "--limit", less, status=1).stdout
    stop = json.loads(ration("replay", log, "--limit", less, "--json", status=1).stdout)
    record = read_log(log)[stop["refused_seq"]]
    expect("record", (stop["fits"], stop["api"], stop["refused_bytes"]), (False, record["api"], record["req"]))
    expect_that(text, f"record {record['seq']}, {record['api']}" in text and f"({record['req']} bytes)" in text)


def limit_of_the_log(folder):
    log = logged(folder, COMMANDS["add_vectors"], "--limit", "1GiB")
    expect("limit", json.loads(ration("replay", log, "--json").stdout)["limit"], GIB)
    expect("of one device", json.loads(ration("replay", log, "--json", "--limit", "0=2GiB").stdout)["limit"], 2 * GIB)
    expect_that("of none", 'no device "7"' in ration("replay", log, "--limit", "7=2GiB", status=2).stderr)
    expect("a share", json.loads(ration("replay", log, "--json", "--limit", "25%").stdout)["limit"], GIB)


def random_program(numbers, managed):
    """Blocks of sizes of one kind, freed in any order."""
    most = numbers.choice([8, 40, 100, 400]) * MIB
    size = numbers.choice([lambda: numbers.randint(1, 300_000), lambda: 1 << numbers.randint(9, 25), lambda: numbers.randint(2 * MIB, 60 * MIB),
                           lambda: numbers.randint(1, 1 << numbers.randint(12, 25)),
                           lambda: numbers.choice([3333333, 9 * MIB, 17_000_000, 200_000, 12_345_678, 1_500_001])])
    steps, live, made = [], {}, 0
    for _ in range(numbers.randint(5, 120)):
        wanted = min(size(), most // 2)
        while live and (sum(live.values()) + wanted > most or numbers.random() < 0.3):
            freed = numbers.choice(list(live))
            steps.append(f"free={freed}")
            del live[freed]
        if managed and numbers.random() < 0.05:
            steps.append(f"managed={wanted}")
            continue
        steps.append(f"alloc={wanted}")
        live[made] = wanted
        made += 1
    return [*STRICT, *steps]


def runs(*options, programs=8):
    """Random programs run under the limit that a replay finds, to the byte in mode direct."""
    def case(folder):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}")
        numbers = random.Random(seed)
        for _ in range(programs):
            steps = random_program(numbers, managed=not options)
            log = logged(folder, steps, *options)
            found = last_number(ration("replay", log, "--find-min", *options))
            ration("run", "-q", "--sim", "4GiB", *options, "--limit", found, "--", *steps)
            if options and found > MIB:
                ration("run", "-q", "--sim", "4GiB", *options, "--limit", found - 1, "--", *steps, status=1)
            log.unlink()
    return case


def in_slabs(folder):
    """Slabs serve a limit that is not in whole pages, and pools of slabs are not replayed exactly: both are said."""
    log = logged(folder, [*STRICT, "alloc=40m", "alloc=3m"])
    done = ration("replay", log, "--limit", 51 * MIB)
    expect_that(done.stderr, "device 0: the limit is not in whole pages of 2MiB, so slabs serve it" in done.stderr)
    told = json.loads(ration("replay", log, "--limit", 51 * MIB, "--json").stdout)
    expect("JSON", (told["backing"], told["exact"]), ("slab", False))
    told = json.loads(ration("replay", log, "--limit", 52 * MIB, "--json").stdout)
    expect("in whole pages", (told["backing"], told["exact"]), ("vmm", True))
    done = ration("replay", log, "--backing", "slab", "--find-min")
    expect_that(done.stdout, "device 0: needs about " in done.stdout)
    odd = logged(folder, [*STRICT, "alloc=40m", "alloc=3m"], "--limit", 51 * MIB, "--force")
    expect("another limit", json.loads(ration("replay", odd, "--find-min", "--json").stdout)["backing"], "vmm")


def lost_records(folder):
    """The peak in the log's end is needed whatever the records say."""
    log = logged(folder, [*STRICT, "alloc=40m", "free=0", "alloc=30m"])
    meta, *records = read_log(log)
    freed, = [record["seq"] for record in records if record["t"] == "free"]
    for first, peak in ((freed + 1, 40), (records[-1]["seq"], 40)):
        kept = [meta | {"part": 2, "first_seq": first}, *records[first - 1:]]
        log.write_text("".join(json.dumps(record) + "\n" for record in kept))
        expect("the smallest", last_number(ration("replay", log, "--find-min")), peak * MIB)
        done = ration("replay", log, "--limit", (peak - 2) * MIB, status=1)
        expect_that(done.stdout, f"does not fit into 38MiB ({38 * MIB} bytes): the records that are missing used more; peak used 40MiB"
                    in done.stdout)
        done = ration("replay", log, "--limit", peak * MIB)
        expect_that(done.stdout, f"fits into 40MiB ({40 * MIB} bytes), as far as the log goes: it lacks " in done.stdout)
        told = json.loads(ration("replay", log, "--limit", (peak - 2) * MIB, "--json", status=1).stdout)
        expect("JSON", (told["fits"], told["peak_bytes"], told["exact"]), (False, peak * MIB, False))
        expect_that(f"why: {told['reasons']}", "missing" in told["reasons"][0])


def direct(folder):
    """Exactly the peak of what was requested, of every kind together."""
    log = logged(folder, COMMANDS["managed memory"])
    live, held, peak = {}, 0, 0
    for record in read_log(log):
        if record["t"] == "alloc":
            live[record["addr"]] = record["req"]
            held += record["req"]
            peak = max(peak, held)
        elif record["t"] == "free":
            held -= live.pop(record["addr"])
    expect("smallest", last_number(ration("replay", log, "--find-min", "--mode", "direct")), peak)
    ration("replay", log, "--limit", peak, "--mode", "direct")
    ration("replay", log, "--limit", peak - 1, "--mode", "direct", status=1)


def asynchronous(folder):
    """No figure is made up: only what cannot fit anywhere is known."""
    log = logged(folder, COMMANDS["add_vectors"])
    for words in (["--find-min"], ["--limit", "1GiB"]):
        done = ration("replay", log, "--mode", "async", *words, status=2)
        expect_that(f"{done.stdout!r} {done.stderr!r}", done.stdout == "" and "--mode async" in done.stderr)
    ration("replay", log, "--mode", "async", "--limit", "40MiB", status=1)


def stream_ordered(mode):
    """The driver's pools count with what they held: with the limit that is found the program runs."""
    def case(folder):
        steps = [*STRICT, "alloc=3m", "alloc=5m", "alloc_async=40m"]
        log = logged(folder, steps, "--mode", mode, "--limit", "3GiB")
        held = max(record["pool_reserved"] for record in read_log(log) if record["t"] == "sample")
        done = ration("replay", log, "--find-min")
        found = last_number(done)
        expect_that(done.stderr, f"up to {held // MIB}MiB ({held} bytes)" in done.stderr)
        expect_that(done.stdout, "needs about" in done.stdout and f"peak used 48MiB ({48 * MIB} bytes)" in done.stdout)
        expect_that(f"{found} is enough for the pools", found >= held)
        told = json.loads(ration("replay", log, "--find-min", "--json").stdout)
        expect("JSON", (told["exact"], told["min_limit_is_most"], told["min_arena_bytes"], told["peak_bytes"]), (False, True, found, 48 * MIB))
        ration("run", "--sim", "4GiB", "--mode", mode, "--limit", found, "--", *steps)
    return case


def trace_of(log):
    """The requests of a log's blocks, as pool_replay reads them."""
    live, lines = {}, []
    for record in read_log(log):
        if record["t"] == "alloc":
            live[record["addr"]] = record["seq"]
            lines.append(f"a {record['seq']} {record['req']}")
        elif record["t"] == "free":
            lines.append(f"f {live.pop(record['addr'])}")
    return "".join(line + "\n" for line in lines)


def as_pool_replay(folder):
    """The same keys and, of a log with one pool, about the same figures."""
    log = logged(folder, COMMANDS["like training"])
    trace = pathlib.Path(folder) / "run.trace"
    trace.write_text(trace_of(log))
    mine = json.loads(ration("replay", log, "--find-min", "--backing", "slab", "--json").stdout)
    done = subprocess.run([BUILD / "bin/pool_replay", "--trace", trace, "--find-min", "--backing", "slab", "--json"], capture_output=True,
                          text=True, timeout=HANG, check=True)
    theirs = json.loads(done.stdout)
    expect("keys that are missing", set(theirs) - set(mine), {"trace", "arena_bytes"})
    equal = ("operations", "peak_live_blocks", "backing", "threads", "fits")
    expect("figures", {key: mine[key] for key in equal}, {key: theirs[key] for key in equal})
    expect("what is requested", mine["requested_peak_bytes"], theirs["peak_bytes"])
    expect("the peak, as in a report", mine["peak_bytes"], json.loads(ration("report", log, "--json").stdout)["peak_bytes"])
    expect_that(f"{mine['min_arena_bytes']}", abs(mine["min_arena_bytes"] - theirs["min_arena_bytes"]) <= theirs["min_arena_bytes"] / 100)


def not_exact(folder):
    """A log of a run in which something was refused does not say what the program needs."""
    log = logged(folder, [PROGRAMS / "steps", "init", "context=0", "alloc=20m", "alloc=20m"], "--limit", "32MiB")
    done = ration("replay", log, "--find-min", "--json")
    expect("exact", json.loads(done.stdout)["exact"], False)
    expect_that(done.stderr, "1 request was refused" in done.stderr and len(done.stderr.splitlines()) == 1)


def nothing_served(folder):
    """Neither does one in which nothing was served: its first contexts were refused."""
    log = logged(folder, [PROGRAMS / "steps", "init", "query"])
    meta, *others = log.read_text().splitlines()
    oom = {"t": "oom", "dev": 0, "api": "cuDevicePrimaryCtxRetain", "req": 0, "reason": "device", "used": 0, "device_free": None, "seq": 1}
    later = [json.dumps(record | {"seq": record["seq"] + 1}) for record in map(json.loads, others)]
    log.write_text("\n".join([meta, json.dumps(oom), *later, ""]))
    done = ration("replay", log, "--find-min")
    expect("text", done.stdout.splitlines()[0], "no request for device memory was served")
    expect_that(done.stderr, "device 0: 1 request was refused" in done.stderr and len(done.stderr.splitlines()) == 1)
    expect("exact", json.loads(ration("replay", log, "--find-min", "--json").stdout)["exact"], False)
    said = ration("check", log, "--no-failures", status=1).stdout
    expect_that(said, "1 refusal of cuDevicePrimaryCtxRetain, reason device" in said and "0 bytes" not in said)


def nothing_requested(folder):
    log = logged(folder, [PROGRAMS / "steps", "init", "context=0", "query"])
    expect("smallest", last_number(ration("replay", log, "--find-min")), MIB)


def refused(words, part):
    def case(folder):
        log = logged(folder, COMMANDS["add_vectors"])
        done = ration("replay", *(log if word == "LOG" else word for word in words), status=2)
        expect("stdout", done.stdout, "")
        expect_that(f"{part!r} is in one line of {done.stderr!r}", part in done.stderr and len(done.stderr.splitlines()) == 1)
    return case


main({f"{name} needs what find-min finds": agrees(command) for name, command in COMMANDS.items()}
     | {"where it stops": stops,
        "the log's own limit": limit_of_the_log,
        "random programs run": runs(),
        "random programs run, mode direct": runs("--mode", "direct"),
        "slabs": in_slabs,
        "records that are missing": lost_records,
        "mode direct": direct,
        "mode async": asynchronous,
        **{f"stream-ordered memory, {mode}": stream_ordered(mode) for mode in ("pool", "direct", "async")},
        "as pool_replay": as_pool_replay,
        "a log with refusals": not_exact,
        "a log of refusals alone": nothing_served,
        "nothing requested": nothing_requested,
        "no log": refused(["missing"], "No such file"),
        "no argument": refused([], "LOG is required"),
        "a wrong mode": refused(["LOG", "--mode", "quick"], "--mode"),
        "a wrong backing": refused(["LOG", "--backing", "auto"], "--backing"),
        "a wrong limit": refused(["LOG", "--limit", "3x"], "--limit"),
        "two questions": refused(["LOG", "--limit", "1g", "--find-min"], "--find-min")})
