"""Holds memory of device 0 until its standard input ends: holder.py BYTES"""
import sys

from cuda.bindings import driver


def done(answer):
    code, *values = answer
    if code != driver.CUresult.CUDA_SUCCESS:
        sys.exit(code.name)
    return values[0] if values else None


done(driver.cuInit(0))
done(driver.cuCtxSetCurrent(done(driver.cuDevicePrimaryCtxRetain(done(driver.cuDeviceGet(0))))))
done(driver.cuMemAlloc(int(sys.argv[1])))
print("ready", flush=True)
sys.stdin.read()
