#!/usr/bin/env python3
"""Which tokens can be opened, what the opener sees, and the life of a block that is open elsewhere."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peers import INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE, NOT_FOUND, OUT_OF_MEMORY, Peers  # noqa: E402
from harness import MIB, expect, expect_that, main, of_type, read_log  # noqa: E402


def peers(case, **settings):
    def with_machine(folder):
        with Peers(folder, **settings) as machine:
            case(machine)
    return with_machine


def both_ways(call):
    def case(machine):
        exporter, importer = machine.peer(), machine.peer()
        exporter.do("take 5000 1", "take 100000 7", "take 5000 2")
        expect("opened", importer.do(f"{call} {exporter.share('own1')}"), "new")
        expect("read", importer.do("read opened 100000"), "7")
        importer.do("write opened 9 100000")
        expect("written", exporter.do("read own1 100000"), "9")
        expect("the neighbours", (exporter.do("read own0 5000"), exporter.do("read own2 5000")), ("1", "2"))
        importer.do("close opened")
        expect("closed", importer.code("read opened 100000"), INVALID_VALUE)
        exporter.end()
        importer.end()
        machine.ps()
        expect("files left", machine.files(), [])
    return case


def own_range(machine):
    exporter, importer = machine.peer(), machine.peer()
    exporter.do("take 512 1", "take 100000 7", "take 512 2")
    token = exporter.share("own1")
    expect("the same token for a place inside", exporter.share("own1+777"), token)
    importer.do(f"open {token}")
    expect("range", importer.do("range opened"), "1 100000")
    expect("dead addresses of the slab", importer.code("range opened+100352"), NOT_FOUND)
    expect("attributes", importer.do("attributes opened"), "2 0 0 1")
    expect("those of the exporter's", exporter.do("attributes own1"), "2 0 1 1")
    expect("freed by its opener", importer.code("free opened"), INVALID_VALUE)
    expect("a place inside closed", importer.code("close opened+512"), INVALID_VALUE)
    expect("passed on", importer.code("share opened"), INVALID_VALUE)
    expect("its own closed", exporter.code("close own1"), INVALID_VALUE)


def own_identity(machine):
    exporter, importer = machine.peer(), machine.peer()
    exporter.do("take 20000 1", "take 20000 2")
    tokens = [exporter.share(f"own{i}") for i in range(2)]
    importer.do(f"open {tokens[0]}", f"open {tokens[1]}")
    importer.do("synchronous opened1+700 1")
    first, second = (importer.do(f"identity opened{i}").split() for i in range(2))
    expect("synchronous", (first[1], second[1]), ("0", "1"))
    expect("inside", importer.do("identity opened1+19999").split(), second)
    importer.do("close opened1", f"open {tokens[1]}")
    again = importer.do("identity opened2").split()
    expect("opened once more", again[1], "0")
    expect_that(f"identifiers {first} {second} {again}", len({first[0], second[0], again[0]}) == 3)
    expect("after both", importer.code("synchronous opened0+4000000 1"), INVALID_VALUE)
    expect("the exporter's own", [exporter.do(f"identity own{i}").split()[1] for i in range(2)], ["0", "0"])


def synchronous(machine):
    """Fills of an opened block have ended when they return, where its opener asks for it."""
    exporter, importer = machine.peer(), machine.peer(SIMCUDA_LATENCY_US="1000")
    exporter.do("take 20000 1", "take 20000 2")
    importer.do(*(f"open {exporter.share(f'own{i}')}" for i in range(2)), "synchronous opened1 1")
    for value in range(3, 8):
        expect("ended", importer.do(f"fill opened1 {value} 20000"), "0")
    expect("seen by its owner", exporter.do("read own1 20000"), "7")
    importer.do("fill opened0 3 20000", "wait", "close opened1", "wait")


def of_one_slab(machine):
    exporter, importer = machine.peer(), machine.peer()
    for value in range(4):
        exporter.do(f"take 20000 {value}")
    tokens = [exporter.share(f"own{i}") for i in range(4)]
    for token in tokens:
        importer.do(f"open {token}")
    expect("again", importer.do(f"open {tokens[3]}"), "again")
    importer.do("close opened1", "close opened3")
    for i in (0, 2, 3):
        expect(f"block {i}", importer.do(f"read opened{i} 20000"), str(i))
        expect(f"range {i}", importer.do(f"range opened{i}"), "1 20000")
    expect("the closed one", importer.code("range opened1"), NOT_FOUND)
    importer.do("close opened0", "close opened2", "close opened3")
    expect("once too often", importer.code("close opened3"), INVALID_VALUE)
    importer.do(f"open {tokens[1]}")
    expect("opened again", importer.do("read opened 20000"), "1")


# Beside other processes the driver would serve large blocks.
IN_SLAB = {"RATION_PREALLOCATE": "true", "RATION_PREALLOCATE_AFTER": "0"}


def freed_while_open(machine):
    """A block of half the limit: while it is open, another one has no room, and its bytes stay."""
    exporter, importer = machine.peer(**IN_SLAB), machine.peer()
    large = 36 * MIB
    exporter.do(f"take {large} 7")
    token = exporter.share()
    importer.do(f"open {token}")
    exporter.do("free own0")
    expect("freed twice", exporter.code("free own0"), INVALID_VALUE)
    expect("its range", exporter.code("range own0"), NOT_FOUND)
    for value in range(20):
        exporter.do(f"take {MIB} {value}")
    expect("another large one", exporter.code(f"take {large} 8"), OUT_OF_MEMORY)
    expect("what is open", importer.do(f"read opened {large}"), "7")
    expect("opened once more, though it is freed", importer.code(f"open {token}"), INVALID_VALUE)
    importer.do("close opened")
    exporter.do(f"take {large} 8")
    expect("a token of what was freed", importer.code(f"open {token}"), INVALID_VALUE)
    other = exporter.share()
    expect_that("another token for another block", other != token)
    importer.do(f"open {other}")
    expect("the new one", importer.do(f"read opened {large}"), "8")


def opener_killed(machine):
    exporter, importer = machine.peer(**IN_SLAB), machine.peer()
    large = 36 * MIB
    exporter.do(f"take {large} 7")
    importer.do(f"open {exporter.share()}")
    exporter.do("free own0")
    expect("while it is open", exporter.code(f"take {large} 8"), OUT_OF_MEMORY)
    importer.kill()
    exporter.do(f"take {large} 8")


def exporter_gone(kill):
    def case(machine):
        exporter, importer = machine.peer(), machine.peer()
        exporter.do("take 100000 7", "take 100000 8")
        tokens = [exporter.share("own0"), exporter.share("own1")]
        importer.do(f"open {tokens[0]}")
        exporter.kill() if kill else exporter.end()
        expect("what is open", importer.do("read opened 100000"), "7")
        for token in tokens:
            expect("opened after its end", importer.code(f"open {token}"), INVALID_VALUE)
        machine.ps()
        expect("files while it is open", len(machine.files()), 1)
        importer.do("close opened")
        machine.ps()
        expect("files after it", machine.files(), [])
    return case


def nothing_to_open(machine):
    exporter, importer = machine.peer(), machine.peer()
    exporter.do("take 100000 7")
    token = exporter.share()
    importer.do(f"open {token}", "close opened")
    for byte in (8, 12, 16, 24, 32, 40):  # version, record, exporter, generation, both halves of the nonce
        altered = token[:2 * byte] + ("0" if token[2 * byte] != "0" else "1") + token[2 * byte + 1:]
        expect(f"byte {byte} altered", importer.code(f"open {altered}"), INVALID_VALUE)
    expect("zeros", importer.code("open " + "0" * 128), INVALID_HANDLE)
    expect("one's own", exporter.code(f"open {token}"), INVALID_CONTEXT)
    exporter.do("free own")
    expect("freed", importer.code(f"open {token}"), INVALID_VALUE)
    expect("one's own, freed", exporter.code(f"open {token}"), INVALID_VALUE)
    expect("a share of what was freed", exporter.code("share own"), INVALID_VALUE)
    exporter.do("take 100000 9")
    expect("freed, and its place taken", importer.code(f"open {token}"), INVALID_VALUE)


def without_ration(machine):
    exporter, plain, importer = machine.peer(), machine.peer(ration=False), machine.peer()
    exporter.do("take 100000 7")
    expect("a token without Ration", plain.code(f"open {exporter.share()}"), INVALID_HANDLE)
    plain.do("take 100000 5")
    importer.do(f"open {plain.share()}")
    expect("a driver's handle under Ration", importer.do("read opened 100000"), "5")
    expect("its range", importer.do("range opened"), "1 100000")
    importer.do("close opened")


def modes(machine):
    direct, pool = machine.peer(RATION_MODE="direct"), machine.peer()
    direct.do("take 100000 3")
    pool.do("take 100000 4")
    pool.do(f"open {direct.share()}")
    direct.do(f"open {pool.share()}")
    expect("the direct one's", pool.do("read opened 100000"), "3")
    expect("the pool's", direct.do("read opened 100000"), "4")
    expect("its range", direct.do("range opened"), "1 100000")
    direct.do("close opened")
    pool.do("close opened")


def contexts(machine):
    exporter, importer = machine.peer(), machine.peer()
    exporter.do("take 100000 7")
    token = exporter.share()
    importer.do(f"open {token}", "destroy", "context")
    expect("closed after its context", importer.code("close opened"), INVALID_VALUE)
    importer.do(f"open {token}")
    expect("in the next context", importer.do("read opened 100000"), "7")
    exporter.do("destroy", "context")
    expect("opened after the exporter's context", importer.code(f"open {token}"), INVALID_VALUE)
    exporter.do("take 100000 8")
    importer.do(f"open {exporter.share()}")
    expect("of its next context", importer.do("read opened 100000"), "8")


def refused(machine):
    log = machine.folder / "log.jsonl"
    machine.state.mkdir(mode=0o777)
    machine.state.chmod(0o777)
    exporter = machine.peer(RATION_LOG=log)
    exporter.do("take 100000 7")
    for _ in range(2):
        expect("without a folder for it", exporter.code("share own"), OUT_OF_MEMORY)
    exporter.end()
    lines = [line for line in exporter.member.err().splitlines() if "shared" in line]
    expect_that(f"one line: {lines}", len(lines) == 1 and str(machine.state) in lines[0])
    records = read_log(log)
    expect("records", [(one["api"], one["reason"]) for one in of_type(records, "oom")],
           [("cuIpcGetMemHandle", "pool_holds")] * 2)
    expect("counted", (records[-1]["refused_ipc"], records[-1]["ooms"]), (2, 0))


def full(machine):
    exporter, importer = machine.peer(), machine.peer()
    exporter.do("take_many 4096")
    expect("shared", exporter.ask("share_all"), (OUT_OF_MEMORY, "4095"))
    token = exporter.share("own17")
    importer.do(f"open {token}")
    exporter.do("free own17", "free own18")
    exporter.do("share own4095")
    expect("no record is left", (exporter.do("take 512 1"), exporter.code("share own")), ("", OUT_OF_MEMORY))
    importer.do("close opened")
    exporter.do("share own")


def direct_for_large(machine):
    log = machine.folder / "log.jsonl"
    exporter, plain, importer = machine.peer(RATION_IPC="direct", RATION_LOG=log), machine.peer(ration=False), machine.peer()
    exporter.do(f"take {2 * MIB} 7", f"take {MIB - 1} 8")
    plain.do(f"open {exporter.share('own0')}")
    expect("the driver's own handle", plain.do(f"read opened {2 * MIB}"), "7")
    expect("a token", plain.code(f"open {exporter.share('own1')}"), INVALID_HANDLE)
    importer.do(f"open {exporter.share('own1')}")
    expect("the small one", importer.do(f"read opened {MIB - 1}"), "8")
    exporter.end()
    expect("sources", [one["src"] for one in of_type(read_log(log), "alloc")], ["driver", "pool"])


main({
    "both ways": peers(both_ways("open")),
    "both ways by the call of CUDA 4.1": peers(both_ways("open_v1")),
    "the range of one block only": peers(own_range),
    "an identity of its own": peers(own_identity),
    "synchronous fills": peers(synchronous),
    "several blocks of one slab": peers(of_one_slab),
    "freed while it is open": peers(freed_while_open),
    "its opener is killed": peers(opener_killed),
    "its exporter is killed": peers(exporter_gone(True)),
    "its exporter ends": peers(exporter_gone(False)),
    "invalid tokens": peers(nothing_to_open),
    "with and without Ration": peers(without_ration),
    "in both modes": peers(modes),
    "contexts that end": peers(contexts),
    "no folder to share in": peers(refused),
    "more blocks than there are records": peers(full),
    "ipc=direct": peers(direct_for_large),
})
