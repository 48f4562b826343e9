#!/usr/bin/env python3
"""by_multiprocessing.py METHOD: a parent and a child started by METHOD exchange blocks by their handles."""
import ctypes
import multiprocessing
import sys

BYTES, ROUNDS = 100_000, 20
LAZY_ENABLE_PEER_ACCESS = 1


class Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * 64)]


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuCtxCreate_v2", ctypes.byref(context), 0, 0)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != 0:
            raise RuntimeError(f"{name}: {code}")

    def take(self, value):
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(BYTES))
        self.fill(address, value)
        return address

    def fill(self, address, value):
        self.call("cuMemsetD8_v2", address, ctypes.c_ubyte(value), ctypes.c_size_t(BYTES))
        self.call("cuCtxSynchronize")

    def read(self, address):
        host = (ctypes.c_ubyte * BYTES)()
        self.call("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(BYTES))
        return set(host)

    def share(self, address):
        handle = Handle()
        self.call("cuIpcGetMemHandle", ctypes.byref(handle), address)
        return bytes(handle)

    def open(self, raw):
        address = ctypes.c_uint64()
        self.call("cuIpcOpenMemHandle_v2", ctypes.byref(address), Handle.from_buffer_copy(raw), LAZY_ENABLE_PEER_ACCESS)
        return address


def child(to_child, to_parent):
    driver = Driver()
    mine = driver.take(200)
    for value in range(ROUNDS):
        theirs = driver.open(to_child.get())
        if driver.read(theirs) != {value}:
            raise RuntimeError("other bytes")
        driver.fill(theirs, value + 100)
        driver.call("cuIpcCloseMemHandle", theirs)
        to_parent.put(driver.share(mine))
    to_child.get()


def main(method):
    multiprocessing.set_start_method(method)
    to_child, to_parent = multiprocessing.Queue(), multiprocessing.Queue()
    process = multiprocessing.Process(target=child, args=(to_child, to_parent))
    process.start()
    driver = Driver()
    for value in range(ROUNDS):
        mine = driver.take(value)
        to_child.put(driver.share(mine))
        theirs = driver.open(to_parent.get())
        if driver.read(theirs) != {200} or driver.read(mine) != {value + 100}:
            raise RuntimeError("other bytes")
        driver.call("cuIpcCloseMemHandle", theirs)
        driver.call("cuMemFree_v2", mine)
    to_child.put(None)
    process.join()
    if process.exitcode != 0:
        raise RuntimeError(f"the child ended with {process.exitcode}")
    print(f"exchanged {ROUNDS}")


if __name__ == "__main__":
    main(sys.argv[1])
