#!/usr/bin/env python3
"""CuPy: kernels of each kind, cuBLAS, its pool, and an allocation that is refused. `async`: with CUDA's own pool.

Lines that begin with `= ` must be the same under any limit; those with `# ` are for the record.
"""
import sys

import cupy
import numpy

MIB = 1 << 20
SCALE = r"""
extern "C" __global__ void scale(float *values, float by, int count) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= by;
}
"""


def say(what, value):
    print(f"= {what}: {value:.5g}" if isinstance(value, float) else f"= {what}: {value}", flush=True)


def note(what):
    free, total = cupy.cuda.runtime.memGetInfo()
    print(f"# {what}: free {free // MIB} MiB of {total // MIB} MiB", flush=True)


def kernels(random):
    host = random.standard_normal((1200, 1200), dtype=numpy.float32)
    block = cupy.asarray(host)
    say("product", float(cupy.abs(block @ block.T).sum(dtype=cupy.float64)))
    say("reduction", float(block.std()))
    square = cupy.ElementwiseKernel("float32 x", "float32 y", "y = x * x", "square_of")
    say("elementwise", float(square(block).sum(dtype=cupy.float64)))
    scale = cupy.RawKernel(SCALE, "scale")
    scale(((block.size + 255) // 256,), (256,), (block, numpy.float32(2), numpy.int32(block.size)))
    say("raw kernel", float(block.sum(dtype=cupy.float64)))
    say("sorted", float(cupy.sort(block.ravel())[::100_000].sum(dtype=cupy.float64)))


def streams():
    totals = []
    for number in range(4):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            block = cupy.arange(1 << 20, dtype=cupy.float64)
            totals.append(float((block * number).sum()))
            stream.synchronize()
    say("streams", float(sum(totals)))


def churn(random, free_all):
    held, wrong = [], 0
    for turn in range(600):
        held.append((turn, cupy.full(int(2 ** random.uniform(6, 23)), turn, dtype=cupy.int32)))
        if len(held) > 40:
            value, block = held.pop(int(random.integers(0, 40)))
            wrong += int((block != value).sum())
        if turn % 200 == 199:
            free_all()
    say("wrong elements", wrong)


def refusal():
    _, total = cupy.cuda.runtime.memGetInfo()
    held = cupy.ones(64 * MIB // 4, dtype=cupy.float32)
    try:
        cupy.empty(total, dtype=cupy.uint8)
        say("refused", "no")
    except (cupy.cuda.memory.OutOfMemoryError, cupy.cuda.runtime.CUDARuntimeError) as failure:
        words = ("OutOfMemory", "MemoryAllocation", "Out of memory")
        say("refused", "out of memory" if any(word in repr(failure) for word in words) else str(failure))
    say("goes on", float(held.sum()))


def main():
    random = numpy.random.default_rng(0)
    if sys.argv[1:] == ["async"]:
        pool = cupy.cuda.MemoryAsyncPool()
        cupy.cuda.set_allocator(pool.malloc)
        free_all = cupy.cuda.Device().synchronize
    else:
        free_all = cupy.get_default_memory_pool().free_all_blocks
    print(f"# cupy {cupy.__version__} runtime {cupy.cuda.runtime.runtimeGetVersion()}")
    note("at the start")
    kernels(random)
    streams()
    churn(random, free_all)
    refusal()
    free_all()
    note("at the end")


if __name__ == "__main__":
    main()
