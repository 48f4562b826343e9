"""Replays a log: sums what was held over time, and checks that the records are consistent.

A block of the pool is in a live slab, granule-aligned, disjoint from all others and never at the slab's own address. A slab
ends only when no block in it is live. Every `free` matches an `alloc`. The device holds the process's slabs and the
driver's own allocations.
"""
import bisect
from collections import Counter
from dataclasses import dataclass, field

from harness import expect, expect_that

GRANULE = 512


@dataclass
class Books:
    slabs: dict = field(default_factory=dict)  # number -> its slab_alloc record
    live: dict = field(default_factory=dict)   # address -> its alloc record
    starts: list = field(default_factory=list)  # of live pool blocks, ascending
    held: Counter = field(default_factory=Counter)  # device -> bytes of slabs and of driver allocations
    held_peak: Counter = field(default_factory=Counter)
    pool_reserved: Counter = field(default_factory=Counter)  # device -> bytes of the driver's own pools
    live_bytes: Counter = field(default_factory=Counter)
    live_peak: Counter = field(default_factory=Counter)
    ended: Counter = field(default_factory=Counter)  # api -> blocks
    slabs_ended: Counter = field(default_factory=Counter)  # api -> slabs
    granules: Counter = field(default_factory=Counter)  # device -> held
    granules_peak: Counter = field(default_factory=Counter)
    stitched: Counter = field(default_factory=Counter)  # device -> blocks

    def hold(self, record, bytes_more):
        self.held[record["dev"]] += bytes_more
        self.held_peak[record["dev"]] = max(self.held_peak[record["dev"]], self.held[record["dev"]])

    def slab_alloc(self, record):
        expect_that(f"slab {record['slab']} is new", record["slab"] not in self.slabs)
        self.slabs[record["slab"]] = record
        self.hold(record, record["size"])
        device = record["dev"]
        self.granules[device] += record["backend"] == "cuMemCreate"
        self.granules_peak[device] = max(self.granules_peak[device], self.granules[device])

    def slab_free(self, record):
        slab = self.slabs.pop(record["slab"], None)
        expect_that(f"slab {record['slab']} is held", slab is not None)
        for key in ("addr", "size", "dev", "ctx"):
            expect(f"{key} of the freed slab", record[key], slab[key])
        self.hold(record, -record["size"])
        self.slabs_ended[record["api"]] += 1
        if slab["backend"] == "cuMemCreate":
            self.granules[record["dev"]] -= 1
            return  # its address is a handle
        start = int(slab["addr"], 16)
        at = bisect.bisect_left(self.starts, start)
        expect_that(f"slab {record['slab']} ends with a live block in it",
                    at == len(self.starts) or self.starts[at] >= start + slab.get("range", slab["size"]))

    def place(self, record):
        slab = self.slabs.get(record["slab"])
        expect_that(f"seq {record['seq']}: its slab is held", slab is not None)
        address, size = int(record["addr"], 16), record["size"]
        first = int(slab["addr"], 16)
        expect_that(f"seq {record['seq']}: inside its slab",
                    first <= address and address + size <= first + slab.get("range", slab["size"]))
        expect_that(f"seq {record['seq']}: on a granule, rounded to one", address % GRANULE == 0 and size % GRANULE == 0)
        expect_that(f"seq {record['seq']}: not rounded further", record["req"] <= size < record["req"] + GRANULE)
        expect("device and context of the slab", (slab["dev"], slab["ctx"]), (record["dev"], record["ctx"]))
        at = bisect.bisect_left(self.starts, address)
        before = self.live[self.starts[at - 1]] if at else None
        expect_that(f"seq {record['seq']}: disjoint from the block before it",
                    before is None or self.starts[at - 1] + before["size"] <= address)
        expect_that(f"seq {record['seq']}: disjoint from the block after it",
                    at == len(self.starts) or address + size <= self.starts[at])
        self.starts.insert(at, address)

    def sample(self, record):
        """The memory reserved by the driver's own pools, used or not."""
        self.hold(record, record["pool_reserved"] - self.pool_reserved[record["dev"]])
        self.pool_reserved[record["dev"]] = record["pool_reserved"]

    def alloc(self, record):
        if not record.get("charged", True):
            return
        address = int(record["addr"], 16)
        expect_that(f"{record['addr']} is handed out twice", address not in self.live)
        if record["src"] == "driver":
            self.hold(record, record["size"])
        elif record["kind"] == "device":
            self.place(record)
        self.live[address] = record
        self.stitched[record["dev"]] += record.get("stitched", False)
        self.live_bytes[record["dev"]] += record["size"]
        self.live_peak[record["dev"]] = max(self.live_peak[record["dev"]], self.live_bytes[record["dev"]])

    def free(self, record):
        if not record.get("charged", True):
            return
        address = int(record["addr"], 16)
        block = self.live.pop(address, None)
        expect_that(f"seq {record['seq']}: the freed block is live", block is not None)
        for key in ("size", "dev", "ctx", "src"):
            expect(f"{key} of the freed block", record[key], block[key])
        if block["src"] == "driver":
            self.hold(record, -record["size"])
        elif block["kind"] == "device":
            self.starts.pop(bisect.bisect_left(self.starts, address))
        self.live_bytes[record["dev"]] -= record["size"]
        self.ended[record["api"]] += 1

    def end(self, record):
        devices = range(len(record["peak"]))
        expect("end.peak", record["peak"], [self.live_peak[device] for device in devices])
        expect("end.reserved_peak", record["reserved_peak"], [self.held_peak[device] for device in devices])
        expect("end.granules", record["granules_peak"], [self.granules_peak[device] for device in devices])
        expect("end.stitched", record["stitched"], [self.stitched[device] for device in devices])
        expect("end.live", {one["dev"]: one["bytes"] for one in record["live"] if one["bytes"]},
               {device: size for device, size in self.live_bytes.items() if size})


def added_up(records, limits=None):
    """The state after the last record. `limits`: device -> bytes, checked after every record."""
    books = Books()
    for record in records:
        step = getattr(books, record["t"], None)
        if callable(step):
            step(record)
            over = [device for device, limit in (limits or {}).items() if books.held[device] > limit]
            expect_that(f"seq {record.get('seq')}: devices {over} hold more than their limit", not over)
    return books
