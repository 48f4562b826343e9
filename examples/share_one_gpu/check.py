#!/usr/bin/env python3
"""Recomputes each program's peaks from its log and compares them with the program's output and the log's last record.

check.py gpu|sim FOLDER A_LIMIT B_LIMIT: prints the demo's last line; exit status 1 on any difference.
"""
import json
import pathlib
import re
import sys


def expect(holds, otherwise):
    if not holds:
        raise ValueError(otherwise)


def read_log(path):
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    expect(records and records[0]["t"] == "meta" and records[0]["schema"] == "ration.events/1", f"{path.name}: no meta")
    expect(records[-1]["t"] == "end", f"{path.name}: no end")
    numbers = [record["seq"] for record in records[1:]]
    expect(numbers == list(range(numbers[0], numbers[0] + len(numbers))), f"{path.name}: seq has gaps")
    return records


def replay(records):
    """The peak of live bytes, rounded and as requested, from when to when it was held (unix ns), the bytes still live at the
    end, the peak of device memory, and the number of refusals."""
    live, held, asked, peak, asked_peak, refused, at_peak = {}, 0, 0, 0, 0, 0, None
    reserved, reserved_peak = 0, 0
    start = records[0]["start_unix_ns"]
    for record in records:
        if record["t"] == "alloc":
            expect(record["addr"] not in live, f"{record['addr']} was handed out twice")
            live[record["addr"]] = record
            held += record["size"]
            asked += record["req"]
            asked_peak = max(asked_peak, asked)
            if held > peak:
                peak, at_peak = held, [start + record["ts"], None]
        elif record["t"] == "free":
            block = live.pop(record["addr"])
            expect(block["size"] == record["size"], f"{record['addr']} was freed with another size")
            held -= block["size"]
            asked -= block["req"]
            if at_peak[1] is None:
                at_peak[1] = start + record["ts"]
        elif record["t"] == "oom":
            expect(record["reason"] in ("limit", "pool_holds"), f"a refusal for reason {record['reason']}")
            refused += 1
        # The device holds the pool's slabs and the blocks of the driver itself.
        if record["t"] in ("slab_alloc", "slab_free") or record.get("src") == "driver":
            reserved += record["size"] * (1 if record["t"].endswith("alloc") else -1)
            reserved_peak = max(reserved_peak, reserved)
    return peak, asked_peak, at_peak, held, reserved_peak, refused


def check(name, folder, limit):
    """The device's name, the program's total and peak in bytes, and from when to when it held the peak."""
    records = read_log(folder / f"{name}.jsonl")
    said = re.search(rf"^{name} total=(\d+) peak=(\d+) blocks=(\d+) ok$", (folder / f"{name}.out").read_text(), re.M)
    expect(said, f"{name} printed no result")
    total, said_peak, _ = map(int, said.groups())
    device = records[0]["devices"][0]
    peak, asked_peak, at_peak, left, reserved, refused = replay(records)
    expect(device["limit"] == device["total"] * int(limit.rstrip("%")) // 100, f"{name}: limit is not {limit} of the device")
    expect(total == device["limit"], f"{name} saw {total} bytes, its limit is {device['limit']}")
    expect(asked_peak == said_peak, f"{name} held {said_peak} bytes, its log says {asked_peak}")
    expect(peak == records[-1]["peak"][0], f"{name}: the log's end says {records[-1]['peak'][0]}, its records {peak}")
    expect(peak <= reserved <= device["limit"], f"{name}: {reserved} bytes for {peak} are more than the limit")
    expect(reserved == records[-1]["reserved_peak"][0], f"{name}: reserved {reserved}, not as the log's end says")
    expect(left == 0, f"{name}: {left} bytes were never freed")
    expect(refused >= 2, f"{name} was never refused by its limit")
    return device["name"], total, peak, at_peak


def main():
    kind, folder, limits = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3:5]
    try:
        name, a_total, a_peak, a_full = check("a", folder, limits[0])
        _, b_total, b_peak, b_full = check("b", folder, limits[1])
        expect(max(a_full[0], b_full[0]) < min(a_full[1], b_full[1]), "a and b were never full at the same time")
    except (KeyError, IndexError, OSError, ValueError) as failure:
        print(f"demo: FAILED {failure if isinstance(failure, (ValueError, OSError)) else repr(failure)}")
        return 1
    device = "sim" if kind == "sim" else name.replace(" ", "_")
    print(f"demo: ok device={device} a_total={a_total} a_peak={a_peak} b_total={b_total} b_peak={b_peak}")
    return 0


sys.exit(main())
