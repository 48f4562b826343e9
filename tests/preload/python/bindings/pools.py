#!/usr/bin/env python3
"""The driver's memory pools and stream-ordered allocations from them: pools.py [fill]"""
import sys

from cuda.bindings import driver

from gpu import MIB, Refused, code_of, done, fill, on_device, pattern, read, same, start, writable, write

ATTRIBUTE = driver.CUmemPool_attribute
THRESHOLD = ATTRIBUTE.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
RESERVED, RESERVED_HIGH = ATTRIBUTE.CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, ATTRIBUTE.CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
USED, USED_HIGH = ATTRIBUTE.CU_MEMPOOL_ATTR_USED_MEM_CURRENT, ATTRIBUTE.CU_MEMPOOL_ATTR_USED_MEM_HIGH
REUSE = (ATTRIBUTE.CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, ATTRIBUTE.CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC,
         ATTRIBUTE.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES)
FOR_EVER = (1 << 64) - 1
STEP = 32 * MIB  # by which a pool grows


def new_pool(most=0):
    wanted = driver.CUmemPoolProps()
    wanted.allocType = driver.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location = on_device()
    wanted.maxSize = most
    return done(driver.cuMemPoolCreate(wanted))


def state_of(pool, *attributes):
    return [int(done(driver.cuMemPoolGetAttribute(pool, attribute))) for attribute in attributes]


def set_to(pool, attribute, value):
    done(driver.cuMemPoolSetAttribute(pool, attribute, driver.cuuint64_t(value)))


def defaults(device):
    pool = done(driver.cuDeviceGetDefaultMemPool(device))
    print(f"the default one is current: {int(pool) == int(done(driver.cuDeviceGetMemPool(device)))}")
    print(f"reuse {state_of(pool, *REUSE)}, keeps {state_of(pool, THRESHOLD)}, holds {state_of(pool, RESERVED, USED)}")
    done(driver.cuMemPoolSetAttribute(pool, REUSE[1], 0))
    print(f"reuse {state_of(pool, *REUSE)}")
    done(driver.cuMemPoolSetAttribute(pool, REUSE[1], 1))
    print(f"it cannot be destroyed: {code_of(driver.cuMemPoolDestroy(pool))}")


def one_stream(device, stream):
    """As a training step: allocates, uses, frees and allocates again in stream order."""
    pool = done(driver.cuDeviceGetDefaultMemPool(device))
    given = pattern(1, 5 * MIB)
    first = done(driver.cuMemAllocAsync(5 * MIB, stream))
    done(driver.cuMemcpyHtoDAsync(first, given.ctypes.data, 5 * MIB, stream))
    second = done(driver.cuMemAllocAsync(5 * MIB, stream))
    done(driver.cuMemcpyDtoDAsync(second, first, 5 * MIB, stream))
    done(driver.cuMemFreeAsync(first, stream))
    third = done(driver.cuMemAllocAsync(5 * MIB, stream))
    print(f"the same stream has it again at once: {int(third) == int(first)}")
    done(driver.cuMemsetD8Async(third, 9, 5 * MIB, stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"data: {same(read(second, 5 * MIB), given)}, holds {state_of(pool, RESERVED, USED)}")
    done(driver.cuMemFree(second))  # a synchronous free is allowed, too
    done(driver.cuMemFreeAsync(third, stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"freed: {state_of(pool, RESERVED, USED)} at most {state_of(pool, RESERVED_HIGH, USED_HIGH)}")


def thresholds(stream):
    pool = new_pool()
    set_to(pool, THRESHOLD, FOR_EVER)
    blocks = [done(driver.cuMemAllocFromPoolAsync(20 * MIB, pool, stream)) for _ in range(4)]
    for number, block in enumerate(blocks):
        write(block, pattern(number, MIB))
    print(f"four blocks: {[same(read(block, MIB), pattern(number, MIB)) for number, block in enumerate(blocks)]}")
    print(f"hold {state_of(pool, RESERVED, USED)}")
    for block in blocks[1:]:
        done(driver.cuMemFreeAsync(block, stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"one left: {state_of(pool, THRESHOLD, RESERVED, USED)}")
    done(driver.cuMemPoolTrimTo(pool, 3 * STEP))
    print(f"trimmed to three steps: {state_of(pool, RESERVED, USED)}")
    done(driver.cuMemPoolTrimTo(pool, 0))
    print(f"trimmed: {state_of(pool, RESERVED, USED)}, its data {same(read(blocks[0], MIB), pattern(0, MIB))}")
    set_to(pool, USED_HIGH, 0)
    set_to(pool, RESERVED_HIGH, 0)
    print(f"high marks anew: {state_of(pool, RESERVED_HIGH, USED_HIGH)}")
    set_to(pool, THRESHOLD, 0)
    done(driver.cuMemFreeAsync(blocks[0], stream))
    done(driver.cuStreamSynchronize(stream))
    print(f"keeps nothing: {state_of(pool, RESERVED, USED)}")
    done(driver.cuMemPoolDestroy(pool))


def as_current(device, stream):
    pool = new_pool(2 * STEP)
    done(driver.cuDeviceSetMemPool(device, pool))
    print(f"current: {int(done(driver.cuDeviceGetMemPool(device))) == int(pool)}")
    block = done(driver.cuMemAllocAsync(STEP, stream))
    print(f"it is used: {state_of(pool, RESERVED, USED)}")
    print(f"no more than it may hold: {code_of(driver.cuMemAllocAsync(STEP + MIB, stream))}")
    done(driver.cuDeviceSetMemPool(device, done(driver.cuDeviceGetDefaultMemPool(device))))
    done(driver.cuMemPoolDestroy(pool))
    write(block, pattern(5, MIB))
    print(f"destroyed, its block lives: {same(read(block, MIB), pattern(5, MIB))}")
    done(driver.cuMemFreeAsync(block, stream))
    done(driver.cuStreamSynchronize(stream))


def access(stream):
    pool = new_pool()
    done(driver.cuMemPoolSetAccess(pool, [writable(on_device())], 1))
    print(f"access: {done(driver.cuMemPoolGetAccess(pool, on_device())).name}")
    block = done(driver.cuMemAllocFromPoolAsync(3 * MIB, pool, stream))
    whose = done(driver.cuPointerGetAttribute(driver.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, block))
    print(f"whose it is: {int(whose) == int(pool)}")
    base, size = done(driver.cuMemGetAddressRange(block))
    print(f"range: {int(block) - int(base)} into {size}")
    done(driver.cuMemFreeAsync(block, stream))
    done(driver.cuStreamSynchronize(stream))
    done(driver.cuMemPoolDestroy(pool))


def fill_with_it(stream):
    """In pieces of one step. The pool keeps freed memory until it is trimmed."""
    pool = new_pool()
    set_to(pool, THRESHOLD, FOR_EVER)

    def take(count):
        try:
            return done(driver.cuMemAllocFromPoolAsync(count * STEP, pool, stream))
        except Refused:
            done(driver.cuStreamSynchronize(stream))  # a block whose free is still pending may be needed
            return done(driver.cuMemAllocFromPoolAsync(count * STEP, pool, stream))

    fill(take, lambda block: done(driver.cuMemFreeAsync(block, stream)), write, lambda block: read(block, MIB))
    done(driver.cuStreamSynchronize(stream))
    print(f"kept: {state_of(pool, RESERVED, USED)}")
    done(driver.cuMemPoolTrimTo(pool, 0))
    print(f"trimmed: {state_of(pool, RESERVED, USED)}")
    other = new_pool()
    block = done(driver.cuMemAllocFromPoolAsync(state_of(pool, RESERVED_HIGH)[0], other, stream))
    write(block, pattern(6, MIB))
    print(f"all of it from another pool: {same(read(block, MIB), pattern(6, MIB))}")
    done(driver.cuMemFreeAsync(block, stream))
    done(driver.cuMemPoolDestroy(other))
    done(driver.cuMemPoolDestroy(pool))


def main():
    device = start()
    stream = done(driver.cuStreamCreate(1))  # CU_STREAM_NON_BLOCKING
    if "fill" in sys.argv[1:]:
        fill_with_it(stream)
        return
    defaults(device)
    one_stream(device, stream)
    thresholds(stream)
    as_current(device, stream)
    access(stream)


main()
