#!/usr/bin/env python3
"""Blocks of granules that other processes open: where they may lie, who keeps them, and the socket by which an opener gets
their memory."""
import array
import os
import pathlib
import resource
import signal
import socket
import stat
import struct
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from peers import INVALID_VALUE, OUT_OF_MEMORY, Peers  # noqa: E402
from harness import MIB, SANITIZED, expect, expect_that, main  # noqa: E402

PAGE = 2 * MIB
NOT_SUPPORTED = "801"
REQUEST, REPLY = struct.Struct("<Q64sQ"), struct.Struct("<QIIQ32Q")
REQUEST_MAGIC, REPLY_MAGIC = (int.from_bytes(text, "little") for text in (b"RATIPART", b"RATISENT"))
SENT, NO_BLOCK = 0, 1
LATE = 10  # seconds; a refusal that takes as long has hung


def peers(case, **settings):
    def with_machine(folder):
        with Peers(folder, RATION_BACKING="vmm", **settings) as machine:
            case(machine)
    return with_machine


def files_of(process):
    """{number: what it is}"""
    files = {}
    for one in pathlib.Path(f"/proc/{process}/fd").iterdir():
        try:
            files[int(one.name)] = os.readlink(one)
        except FileNotFoundError:  # closed meanwhile
            pass
    return files


def descriptors(peer):
    return files_of(peer.member.pid)


def within_reason(condition):
    """Waits for what another thread does after it has answered."""
    late = time.monotonic() + LATE
    while not condition() and time.monotonic() < late:
        os.sched_yield()


def sockets(peer):
    return sorted(number for number, what in descriptors(peer).items() if what.startswith("socket:"))


def threads(peer):
    """{name: thread's folder}"""
    return {(one / "comm").read_text().strip(): one for one in pathlib.Path(f"/proc/{peer.member.pid}/task").iterdir()}


def expect_descriptors(peer, count):
    """The last connection may end after its opener has its answer."""
    within_reason(lambda: len(descriptors(peer)) == count)
    expect("descriptors", len(descriptors(peer)), count)


def socket_of(machine):
    found = [one for one in machine.state.iterdir() if one.name.endswith(".sock")]
    expect("sockets", len(found), 1)
    return found[0]


def connect(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.settimeout(LATE)
    made.connect(str(path))
    return made


def ask(path, token, first=0):
    """(state, parts, descriptors) of the answer to a request."""
    with connect(path) as asked:
        asked.send(REQUEST.pack(REQUEST_MAGIC, token, first))
        room = socket.CMSG_SPACE(32 * array.array("i").itemsize)
        content, control, _, _ = asked.recvmsg(REPLY.size, room)
    files = array.array("i")
    for _, _, data in control:
        files.frombytes(data)
    magic, state, count, total, *parts = REPLY.unpack(content)
    expect("magic", magic, REPLY_MAGIC)
    for file in files:
        os.close(file)
    return state, parts[:count], len(files), total


def many_parts(machine):
    """A block of more granules than three messages carry."""
    exporter, importer = machine.peer(), machine.peer()
    size = 101 * PAGE - 700
    exporter.do("take 5000 1", f"take {size} 7", "take 5000 2")
    token = exporter.share("own1")
    state, parts, files, total = ask(socket_of(machine), bytes.fromhex(token))
    expect_that(f"{total} parts", total > 100)
    expect("of the first message", (state, len(parts), files, set(parts)), (SENT, 32, 32, {PAGE}))
    importer.do(f"open {token}")
    expect("read", importer.do(f"read opened {size}"), "7")
    importer.do(f"write opened 9 {size}")
    expect("written", exporter.do(f"read own1 {size}"), "9")
    expect("the neighbours", (exporter.do("read own0 5000"), exporter.do("read own2 5000")), ("1", "2"))
    expect("its range", importer.do("range opened"), f"1 {size}")
    held = exporter.do("held")
    importer.do("close opened", f"open {token}")
    expect("the importer is charged for nothing", exporter.do("held"), held)
    expect("again", importer.do(f"read opened {size}"), "9")


def stitched(machine):
    """Every second block of a full pool is freed: what is free makes a block only if it is stitched."""
    exporter, importer = machine.peer(), machine.peer()
    size, count = 2 * PAGE, 0
    while exporter.code(f"take {size} {count % 200}") == "0":
        count += 1
    for index in range(0, count, 2):
        exporter.do(f"free own{index}")
    large = count // 2 * size
    expect_that(f"{count} blocks", large > 40 * MIB)
    exporter.do(f"take {large} 201")
    token = exporter.share()
    importer.do(f"open {token}")
    expect("read", importer.do(f"read opened {large}"), "201")
    importer.do(f"write opened 202 {large}")
    expect("written", exporter.do(f"read own {large}"), "202")
    for index in range(1, count, 2):
        expect(f"block {index}", exporter.do(f"read own{index} {size}"), str(index % 200))
    exporter.do("free own")
    expect("freed while it is open", importer.do(f"read opened {large}"), "202")
    expect("no room meanwhile", exporter.code(f"take {large} 203"), OUT_OF_MEMORY)
    importer.do("close opened")
    exporter.do(f"take {large} 203")
    expect("the next one", exporter.do(f"read own {large}"), "203")


def small(machine):
    exporter, importer = machine.peer(), machine.peer()
    for value in range(5):
        exporter.do(f"take 512 {value}")
    importer.do(f"open {exporter.share('own3')}")
    expect("read", importer.do("read opened 512"), "3")
    importer.do("write opened 8 512")
    expect("all", [exporter.do(f"read own{i} 512") for i in range(5)], ["0", "1", "2", "8", "4"])


def as_memory(machine):
    """What is opened is plain memory to its opener, and cannot be taken apart."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {3 * PAGE} 7")
    importer.do(f"open {exporter.share()}")
    for peer, which in ((exporter, "own"), (importer, "opened")):
        expect("a handle of it", peer.code(f"retain {which}"), INVALID_VALUE)
        expect("unmapped", peer.code(f"unmap {which} {PAGE}"), INVALID_VALUE)
        expect("handle types", peer.do(f"handle_types {which}"), "0")
        expect("attributes", peer.do(f"attributes {which}").split()[3], "1")
    expect("freed", importer.code("free opened"), INVALID_VALUE)
    expect("read", importer.do(f"read opened {3 * PAGE}"), "7")


def at_work(machine):
    """Closed while work on it is under way: what was submitted ends as if it were open."""
    exporter, importer = machine.peer(), machine.peer(SIMCUDA_LATENCY_US="50000")
    size = 3 * PAGE
    exporter.do(f"take {size} 7")
    token = exporter.share()
    importer.do(f"open {token}", f"write_later opened 8 {size}", f"write_later opened 9 {size}", "close opened", "wait")
    expect("written", exporter.do(f"read own {size}"), "9")
    importer.do(f"open {token}")
    expect("opened again", importer.do(f"read opened {size}"), "9")


def descriptors_stay(machine):
    """300 opens and closes leave no descriptor behind, on either side."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {3 * PAGE} 7", "take 512 8")
    tokens = [exporter.share("own0"), exporter.share("own1")]
    of_exporter = len(descriptors(exporter))
    importer.do(f"open {tokens[0]}", "close opened")
    of_importer = len(descriptors(importer))
    for turn in range(300):
        importer.do(f"open {tokens[turn % 2]}", "close opened")
    expect("of the importer", len(descriptors(importer)), of_importer)
    expect_descriptors(exporter, of_exporter)
    exporter.do("free own0", "free own1")
    for _ in range(300):
        exporter.do(f"take {3 * PAGE} 7")
        importer.do(f"open {exporter.share()}", "close opened")
        exporter.do("free own")
    expect("memory", exporter.do("held"), "0")


def one_thread(machine):
    """The thread comes with the first share. It takes no signals, and its descriptors are out of the program's way."""
    exporter = machine.peer()
    exporter.do("take 512 1")
    before, idle = len(descriptors(exporter)), threads(exporter)
    expect_that(f"none yet: {set(idle)}", "ration-ipc" not in idle)
    exporter.do("share own", "take 512 1", "share own")
    within_reason(lambda: "ration-ipc" in threads(exporter))
    ours = threads(exporter)["ration-ipc"]
    expect("one", len(threads(exporter)), len(idle) + 1)
    blocked = int(next(line for line in (ours / "status").read_text().splitlines() if line.startswith("SigBlk")).split()[1], 16)
    for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
        expect_that(f"signal {number} is blocked", number >= 32 or blocked >> (number - 1) & 1)
    expect_descriptors(exporter, before + 2)  # the file of its records is only mapped
    expect_that(f"high numbers: {sockets(exporter)}", len(sockets(exporter)) == 2 and sockets(exporter)[0] > 900)
    path = socket_of(machine)
    expect("its mode", stat.S_IMODE(path.stat().st_mode), 0o600)
    expect("a socket", stat.S_ISSOCK(path.stat().st_mode), True)
    exporter.end()
    expect("files left", machine.files(), [])


def no_thread(machine):
    """Where there is no memory for a thread, sharing is refused with a line; then it works."""
    importer = machine.peer()
    records = 5 * MIB // 4  # the exporter's file
    for _ in range(8):  # the C library may have the stack of a thread that has ended, which needs no memory
        exporter = machine.peer()
        exporter.do(f"take {PAGE} 7")
        process = exporter.member.pid
        pages = int(pathlib.Path(f"/proc/{process}/statm").read_text().split()[0])
        before = resource.prlimit(process, resource.RLIMIT_AS)
        resource.prlimit(process, resource.RLIMIT_AS, (pages * os.sysconf("SC_PAGESIZE") + records, before[1]))
        code = exporter.code("share own")
        if code == OUT_OF_MEMORY:
            break
        exporter.end()
    expect("refused", code, OUT_OF_MEMORY)
    expect_that(f"a line: {exporter.member.err()}", "cannot be created" in exporter.member.err())
    expect("sockets", sockets(exporter), [])
    resource.prlimit(process, resource.RLIMIT_AS, before)
    importer.do(f"open {exporter.share()}")
    expect("read", importer.do(f"read opened {PAGE}"), "7")


def strangers(machine):
    """Requests that are no openers' get nothing, and hold nobody up."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {3 * PAGE} 7", f"take {PAGE} 8")
    token = bytes.fromhex(exporter.share("own0"))
    path = socket_of(machine)
    before = len(descriptors(exporter))
    idle = [connect(path) for _ in range(5)]
    for content in (b"", b"x", REQUEST.pack(REQUEST_MAGIC, token, 0)[:-1], REQUEST.pack(REQUEST_MAGIC, token, 0) + b"x",
                    REQUEST.pack(7, token, 0)):
        with connect(path) as asked:
            asked.send(content)
            try:
                answered = asked.recv(REPLY.size)
            except ConnectionResetError:
                answered = b""
            expect(f"an answer to {content[:8]}", answered, b"")
    for byte in (12, 16, 24, 32, 40):
        forged = token[:byte] + bytes([token[byte] ^ 1]) + token[byte + 1:]
        expect(f"byte {byte} altered", ask(path, forged)[:3], (NO_BLOCK, [], 0))
    expect("after the last part", ask(path, token, 10_000)[:3], (NO_BLOCK, [], 0))
    expect("far after it", ask(path, token, (1 << 64) - 1)[:3], (NO_BLOCK, [], 0))
    importer.do(f"open {token.hex()}")
    expect("an opener", importer.do(f"read opened {3 * PAGE}"), "7")
    for one in idle:
        one.close()
    for _ in range(20):
        connect(path).close()
    exporter.do("free own0")
    expect("freed, and open", ask(path, token)[0], SENT)
    importer.do("close opened")
    exporter.do(f"take {PAGE} 9", f"take {PAGE} 9", f"take {PAGE} 9")
    expect("freed, and closed", ask(path, token)[:3], (NO_BLOCK, [], 0))
    expect_descriptors(exporter, before)


def stop(process):
    """Returns once all its threads have stopped: until then one of them may still answer."""
    os.kill(process.member.pid, signal.SIGSTOP)
    within_reason(lambda: all("State:\tT" in (task / "status").read_text() for task in threads(process).values()))


def no_answer(machine):
    """An exporter that is stopped, or dies meanwhile, costs its opener two seconds and one line."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {PAGE} 7")
    token = exporter.share()
    stop(exporter)
    start = time.monotonic()
    expect("of a stopped one", importer.code(f"open {token}"), INVALID_VALUE)
    expect_that("bounded", time.monotonic() - start < LATE)
    expect_that(f"one line: {importer.member.err()}", "does not answer" in importer.member.err())
    os.kill(exporter.member.pid, signal.SIGCONT)
    importer.do(f"open {token}")
    expect("it goes on", importer.do(f"read opened {PAGE}"), "7")
    importer.do("close opened")
    stop(exporter)
    importer.member.send(f"open {token}")
    exporter.kill()
    start = time.monotonic()
    expect("of one that dies", importer.member.read(), INVALID_VALUE)
    expect_that("bounded", time.monotonic() - start < LATE)
    expect("lines", importer.member.err().count("cannot be opened"), 1)
    machine.ps()
    expect("files left", machine.files(), [])


def opener_dies(machine):
    """An opener that dies while it asks leaves the exporter as it was."""
    exporter = machine.peer()
    exporter.do(f"take {30 * MIB} 7")
    token = exporter.share()
    for turn in range(10):
        importer = machine.peer()
        importer.member.send(f"open {token}")
        for _ in range(turn * 3000):
            pass
        importer.kill()
    exporter.do("free own")
    exporter.do(f"take {60 * MIB} 8")  # needs what was open
    importer = machine.peer()
    importer.do(f"open {exporter.share()}")
    expect("another", importer.do(f"read opened {60 * MIB}"), "8")


def no_descriptors(machine):
    """A process without a free descriptor refuses, on either side, and everything goes on once it has some."""
    exporter, importer = machine.peer(), machine.peer()
    for peer in (exporter, importer):
        resource.prlimit(peer.member.pid, resource.RLIMIT_NOFILE, (200, 200))
    exporter.do(f"take {3 * PAGE} 7")
    token = exporter.share()
    for peer in (exporter, importer, exporter):
        peer.do("exhaust")
        start = time.monotonic()
        expect("refused", importer.code(f"open {token}"), OUT_OF_MEMORY)
        expect_that("at once", time.monotonic() - start < LATE)
        peer.do("relax")
        importer.do(f"open {token}")
        expect("then", importer.do(f"read opened {3 * PAGE}"), "7")
        importer.do("close opened")


def closed_by_program(machine):
    """A program that closes what it did not open closes our socket, too."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {PAGE} 7")
    token = exporter.share()
    for _ in range(3):
        exporter.do(*(f"close_file {number}" for number in sockets(exporter)))
        importer.do(f"open {token}")
        expect("read", importer.do(f"read opened {PAGE}"), "7")
        importer.do("close opened")
    expect("sockets", len(sockets(exporter)), 2)
    exporter.end()
    expect("files left", machine.files(), [])


def forked(machine):
    """A forked child has neither thread nor socket, and keeps nothing alive."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {PAGE} 7")
    token = exporter.share()
    child = int(exporter.do("fork"))
    expect("threads of the child", len(list(pathlib.Path(f"/proc/{child}/task").iterdir())), 1)
    def inherited():
        return [what for what in files_of(child).values() if what.startswith("socket:")]
    within_reason(lambda: not inherited())
    expect("sockets of the child", inherited(), [])
    importer.do(f"open {token}")
    expect("read", importer.do(f"read opened {PAGE}"), "7")
    os.kill(child, signal.SIGKILL)


def long_path(machine):
    machine.state = machine.folder / ("s" * 120) / "state"
    machine.state.parent.mkdir()
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {PAGE} 7")
    importer.do(f"open {exporter.share()}")
    expect("read", importer.do(f"read opened {PAGE}"), "7")
    expect("files", len(machine.files()), 2)


def left_socket(machine):
    """The next `ration ps` removes the socket of a dead exporter, and one that no exporter's file stands beside."""
    exporter, importer = machine.peer(), machine.peer()
    exporter.do(f"take {PAGE} 7")
    importer.do(f"open {exporter.share()}")
    lone = machine.state / "ipc-0123456789abcdef.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made:
        made.bind(str(lone))
    machine.ps()
    expect("while it lives", (lone.exists(), len(machine.files())), (False, 2))
    exporter.kill()
    machine.ps()
    expect("while a block is open", [name.endswith(".sock") for name in machine.files()], [False])
    importer.do("close opened")
    machine.ps()
    expect("at last", machine.files(), [])


def not_exportable(machine):
    """Where the device has no descriptors for memory, pools are of granules all the same, and not shared."""
    exporter = machine.peer(SIMCUDA_ATTRIBUTES="103=0")
    exporter.do(f"take {PAGE} 7")
    for _ in range(2):
        expect("refused", exporter.code("share own"), NOT_SUPPORTED)
    expect("attributes", exporter.do("attributes own").split()[2], "0")
    lines = [line for line in exporter.member.err().splitlines() if "shared" in line]
    expect_that(f"one line: {lines}", len(lines) == 1 and "granules" in lines[0])
    expect_that("no thread", "ration-ipc" not in threads(exporter))


main({
    "more parts than a message carries": peers(many_parts, RATION_LIMIT="300MiB", RATION_PREALLOCATE="true",
                                               RATION_PREALLOCATE_AFTER="0"),
    "a stitched block": peers(stitched, RATION_LIMIT="100MiB"),
    "a small block": peers(small),
    "as plain memory": peers(as_memory),
    "closed at work": peers(at_work),
    "no descriptor stays behind": peers(descriptors_stay),
    "one thread, out of the way": peers(one_thread),
    # A sanitizer needs memory and descriptors of its own.
    **({} if SANITIZED else {"no memory for a thread": peers(no_thread), "no descriptors left": peers(no_descriptors)}),
    "strangers at the socket": peers(strangers),
    "an exporter that does not answer": peers(no_answer),
    "openers that die": peers(opener_dies),
    "the program closes the socket": peers(closed_by_program),
    "a forked child": peers(forked),
    "a folder with a long path": peers(long_path),
    "sockets that were left": peers(left_socket),
    "a device that exports nothing": peers(not_exportable),
})
