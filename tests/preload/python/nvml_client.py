"""Prints the memory of each device by nvidia-ml-py, NVIDIA's own NVML client, as JSON."""
import json

import pynvml

pynvml.nvmlInit()
for index in range(pynvml.nvmlDeviceGetCount()):
    device = pynvml.nvmlDeviceGetHandleByUUID(pynvml.nvmlDeviceGetUUID(pynvml.nvmlDeviceGetHandleByIndex(index)))
    one = pynvml.nvmlDeviceGetMemoryInfo(device)
    two = pynvml.nvmlDeviceGetMemoryInfo(device, version=pynvml.nvmlMemory_v2)
    print(json.dumps([[one.total, one.free, one.used], [two.total, two.reserved, two.free, two.used]]))
