#!/usr/bin/env python3
"""Numba: kernels with and without shared memory, streams, pinned and managed arrays, and an allocation that is refused.

Lines that begin with `= ` must be the same under any limit; those with `# ` are for the record.
"""
import numba
import numpy
from numba import cuda, float32

MIB, TILE = 1 << 20, 16


def say(what, value):
    print(f"= {what}: {value:.5g}" if isinstance(value, float) else f"= {what}: {value}", flush=True)


def note(what):
    free, total = cuda.current_context().get_memory_info()
    print(f"# {what}: free {free // MIB} MiB of {total // MIB} MiB", flush=True)


@cuda.jit
def add_to(values, addend):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += addend


@cuda.jit
def multiply(a, b, product):
    left = cuda.shared.array((TILE, TILE), float32)
    right = cuda.shared.array((TILE, TILE), float32)
    x, y = cuda.grid(2)
    column, row = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(a.shape[1] // TILE):
        left[row, column] = a[y, tile * TILE + column]
        right[row, column] = b[tile * TILE + row, x]
        cuda.syncthreads()
        for k in range(TILE):
            total += left[row, k] * right[k, column]
        cuda.syncthreads()
    product[y, x] = total


def products(random):
    size = 512
    a, b = (random.standard_normal((size, size), dtype=numpy.float32) for _ in range(2))
    product = cuda.device_array((size, size), numpy.float32)
    multiply[(size // TILE, size // TILE), (TILE, TILE)](cuda.to_device(a), cuda.to_device(b), product)
    say("product", float(numpy.abs(product.copy_to_host()).sum(dtype=numpy.float64)))


def churn(random):
    held, wrong = [], 0
    for turn in range(200):
        block = cuda.to_device(numpy.zeros(int(2 ** random.uniform(8, 21)), numpy.int32))
        add_to[(block.size + 255) // 256, 256](block, turn)
        held.append((turn, block))
        if len(held) > 30:
            value, block = held.pop(int(random.integers(0, 30)))
            wrong += int((block.copy_to_host() != value).sum())
    say("wrong elements", wrong)


def streams():
    total = 0.0
    for number in range(3):
        stream = cuda.stream()
        with cuda.pinned(values := numpy.zeros(1 << 18, numpy.int32)):
            block = cuda.to_device(values, stream=stream)
            add_to[1024, 256, stream](block, number)
            block.copy_to_host(values, stream=stream)
            stream.synchronize()
        total += float(values.sum())
    say("streams", total)


def managed():
    values = cuda.managed_array(1 << 20, numpy.int32)
    values[:] = 5
    add_to[4096, 256](values, 2)
    cuda.synchronize()
    say("managed", float(values.sum()))


def refusal():
    _, total = cuda.current_context().get_memory_info()
    held = cuda.to_device(numpy.ones(MIB, numpy.int32))
    try:
        cuda.device_array(total, numpy.uint8)
        say("refused", "no")
    except Exception as failure:  # pylint: disable=broad-except; its class has moved between versions
        say("refused", "out of memory" if "MEMORY" in str(failure).upper() else type(failure).__name__)
    say("goes on", float(held.copy_to_host().sum()))


def main():
    random = numpy.random.default_rng(0)
    print(f"# numba {numba.__version__}")
    note("at the start")
    products(random)
    churn(random)
    streams()
    managed()
    refusal()
    note("at the end")


if __name__ == "__main__":
    main()
