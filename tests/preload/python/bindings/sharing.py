#!/usr/bin/env python3
"""A parent and a child process (multiprocessing) share device memory in all three ways: IPC handles of blocks, file descriptors
of memory pools, file descriptors of physical memory."""
import multiprocessing
import multiprocessing.reduction
import os

from cuda.bindings import driver

from gpu import MIB, code_of, done, on_device, pattern, read, same, start, writable, write

FD = driver.CUmemAllocationHandleType.CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
SIZE = 3 * MIB
GRANULES = 4 * MIB


class Handles:
    """cuIpcGetMemHandle, as frameworks use it."""
    def offer(self, peer, number):
        self.address = done(driver.cuMemAlloc(SIZE))
        write(self.address, pattern(number, SIZE))
        handle = done(driver.cuIpcGetMemHandle(self.address))
        peer.send(bytes(handle.reserved))

    def withdraw(self):
        done(driver.cuMemFree(self.address))

    def open(self, peer):
        handle = driver.CUipcMemHandle()
        handle.reserved = peer.recv()
        self.address = done(driver.cuIpcOpenMemHandle(handle, 1))  # CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
        base, size = done(driver.cuMemGetAddressRange(self.address))
        return f"range {int(self.address) - int(base)} into {size}"

    def close(self):
        done(driver.cuIpcCloseMemHandle(self.address))
        return code_of(driver.cuIpcCloseMemHandle(self.address))


class Pools:
    """cuMemPoolExportToShareableHandle once, cuMemPoolExportPointer for each block."""
    def offer(self, peer, number):
        wanted = driver.CUmemPoolProps()
        wanted.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location = on_device()
        wanted.handleTypes = FD
        self.pool = done(driver.cuMemPoolCreate(wanted))
        self.address = done(driver.cuMemAllocFromPoolAsync(SIZE, self.pool, 0))
        done(driver.cuStreamSynchronize(0))
        write(self.address, pattern(number, SIZE))
        send(peer, int(done(driver.cuMemPoolExportToShareableHandle(self.pool, FD, 0))))
        peer.send(bytes(done(driver.cuMemPoolExportPointer(self.address)).reserved))

    def withdraw(self):
        done(driver.cuMemFreeAsync(self.address, 0))
        done(driver.cuStreamSynchronize(0))
        done(driver.cuMemPoolDestroy(self.pool))

    def open(self, peer):
        descriptor = multiprocessing.reduction.recv_handle(peer)
        self.pool = done(driver.cuMemPoolImportFromShareableHandle(descriptor, FD, 0))
        os.close(descriptor)
        done(driver.cuMemPoolSetAccess(self.pool, [writable(on_device())], 1))
        pointer = driver.CUmemPoolPtrExportData()
        pointer.reserved = peer.recv()
        self.address = done(driver.cuMemPoolImportPointer(self.pool, pointer))
        return f"nothing is allocated from it: {code_of(driver.cuMemAllocFromPoolAsync(MIB, self.pool, 0))}"

    def close(self):
        done(driver.cuMemFreeAsync(self.address, 0))
        done(driver.cuStreamSynchronize(0))
        return code_of(driver.cuMemPoolDestroy(self.pool))


class Physical:
    """cuMemExportToShareableHandle of memory from cuMemCreate."""
    def offer(self, peer, number):
        wanted = driver.CUmemAllocationProp()
        wanted.type = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        wanted.location = on_device()
        wanted.requestedHandleTypes = FD
        handle = done(driver.cuMemCreate(GRANULES, wanted, 0))
        self.map(handle)
        write(self.address, pattern(number, SIZE))
        send(peer, int(done(driver.cuMemExportToShareableHandle(handle, FD, 0))))
        done(driver.cuMemRelease(handle))

    def map(self, handle):
        self.address = done(driver.cuMemAddressReserve(GRANULES, 0, 0, 0))
        done(driver.cuMemMap(self.address, GRANULES, 0, handle, 0))
        done(driver.cuMemSetAccess(self.address, GRANULES, [writable(on_device())], 1))

    def withdraw(self):
        done(driver.cuMemUnmap(self.address, GRANULES))
        done(driver.cuMemAddressFree(self.address, GRANULES))

    def open(self, peer):
        descriptor = multiprocessing.reduction.recv_handle(peer)
        handle = done(driver.cuMemImportFromShareableHandle(descriptor, FD))
        os.close(descriptor)
        self.map(handle)
        done(driver.cuMemRelease(handle))
        return f"access {int(done(driver.cuMemGetAccess(on_device(), self.address)))}"

    def close(self):
        self.withdraw()
        return code_of(driver.cuMemUnmap(self.address, GRANULES))


def send(peer, descriptor):
    multiprocessing.reduction.send_handle(peer, descriptor, None)
    os.close(descriptor)


WAYS = (Handles, Pools, Physical)
ROUNDS = 5


def child(parent):
    start()
    for way in WAYS:
        for number in range(ROUNDS):
            theirs = way()
            opened = theirs.open(parent)
            parent.send(f"{opened}, {same(read(theirs.address, SIZE), pattern(number, SIZE))}")
            write(theirs.address, pattern(number + 100, SIZE))
            parent.send(None)
            parent.recv()
            parent.send(theirs.close())


def main():
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=child, args=(theirs,))
    process.start()
    theirs.close()
    start()
    for way in WAYS:
        for number in range(ROUNDS):
            mine = way()
            mine.offer(ours, number)
            print(f"{way.__name__} {number}: {ours.recv()}")
            ours.recv()
            print(f"  written there, read here: {same(read(mine.address, SIZE), pattern(number + 100, SIZE))}")
            ours.send(None)
            print(f"  closed: {ours.recv()}")
            mine.withdraw()
    process.join()
    print(f"the child ended with {process.exitcode}")


if __name__ == "__main__":
    main()
