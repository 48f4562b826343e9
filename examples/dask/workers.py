#!/usr/bin/env python3
"""A Dask cluster whose workers share a GPU, and each take all that they get: workers.py [--alone | --limit SIZE]"""
import argparse
import ctypes
import sys

import distributed
import ration_gpu.dask

MIB = 1 << 20


def eat():
    cuda = ctypes.CDLL("libcuda.so.1")
    context, block, free, total = ctypes.c_void_p(), ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_size_t()
    cuda.cuInit(0)
    if cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) != 0:
        return "FAILED: no memory for a context"
    cuda.cuCtxSetCurrent(context)
    cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    taken = 0
    while cuda.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(8 * MIB)) == 0:
        taken += 8
    return f"sees {total.value // MIB} MiB, got {taken} MiB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--alone", action="store_true", help="without Ration")
    parser.add_argument("--limit", help="of each worker; else equal shares")
    asked = parser.parse_args()
    try:
        if asked.limit:
            ration_gpu.dask.limits(asked.limit)
        elif not asked.alone:
            ration_gpu.dask.limits(workers=4)
    except ValueError as error:
        sys.exit(str(error))
    with distributed.LocalCluster(n_workers=4, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as client:
            for name, worker in sorted((worker["name"], address) for address, worker in client.scheduler_info(-1)["workers"].items()):
                print(f"worker {name}:", client.submit(eat, workers=worker, pure=False).result())
