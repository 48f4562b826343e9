#!/usr/bin/env python3
"""An ordinary CUDA program: fills its GPU with device arrays until it runs out of memory, copies data to every array and
back, frees one array and allocates it again. It knows nothing of Ration and needs a driver, but no toolkit or compiler.
"""
import sys

import numpy
from numba import cuda
from numba.cuda.cudadrv.driver import CudaAPIError

MIB = 1 << 20
BLOCK_BYTES = 100 * MIB
PART_BYTES = 1 * MIB  # written at both ends of each array
OUT_OF_MEMORY = 2


def fill():
    blocks = []
    while True:
        try:
            blocks.append(cuda.device_array(BLOCK_BYTES, dtype=numpy.uint8))
        except CudaAPIError as error:
            if int(error.code) != OUT_OF_MEMORY:
                raise
            return blocks, error


def parts(block):
    return block[:PART_BYTES], block[-PART_BYTES:]


def pattern(number):
    return numpy.random.default_rng(number).integers(0, 256, PART_BYTES, dtype=numpy.uint8)


def write(blocks):
    for index, block in enumerate(blocks):
        for end, part in enumerate(parts(block)):
            part.copy_to_device(pattern(2 * index + end))


def wrong_parts(blocks):
    """Reads back after every part was written, so that two arrays with common memory are found."""
    return sum(
        not numpy.array_equal(part.copy_to_host(), pattern(2 * index + end))
        for index, block in enumerate(blocks)
        for end, part in enumerate(parts(block))
    )


def main():
    device = cuda.get_current_device()
    memory = cuda.current_context().get_memory_info()
    print(f"device: {device.name}")
    print(f"total: {memory.total}")
    print(f"free: {memory.free}")

    blocks, refusal = fill()
    print(f"blocks: {len(blocks)} of {BLOCK_BYTES} bytes")
    print(f"then: {refusal}")
    print(f"free when full: {cuda.current_context().get_memory_info().free}")

    write(blocks)
    wrong = wrong_parts(blocks)
    print(f"copied there and back: {2 * len(blocks)} parts, {wrong} wrong")

    if blocks:
        blocks.pop()  # numba caches it until an allocation fails, then frees it and tries again
        blocks += fill()[0]
    print(f"blocks after one was freed: {len(blocks)}")

    ok = bool(blocks) and wrong == 0
    print("ok" if ok else "failed")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
