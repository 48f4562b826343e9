/* The public driver API as far as the simulated driver implements it, for programs built without a CUDA toolkit. Same
 * names, numbers and layouts as cuda.h 13.0 (checked against it; api_newer.h has what is newer); declarations only.
 * Needs the include roots tests/simcuda/include and shim. With __CUDA_API_VERSION_INTERNAL the export names stay bare.
 */
#ifndef SIMCUDA_CUDA_H_
#define SIMCUDA_CUDA_H_

#include "simcuda/api_array.h"
#include "simcuda/api_capture.h"
#include "simcuda/api_code.h"
#include "simcuda/api_context.h"
#include "simcuda/api_copy.h"
#include "simcuda/api_device.h"
#include "simcuda/api_graph.h"
#include "simcuda/api_green.h"
#include "simcuda/api_legacy32.h"
#include "simcuda/api_managed.h"
#include "simcuda/api_memory.h"
#include "simcuda/api_memset.h"
#include "simcuda/api_newer.h"
#include "simcuda/api_pool.h"
#include "simcuda/api_stream.h"
#include "simcuda/api_vmm.h"

#define CUDA_VERSION 13000

#ifndef __CUDA_API_VERSION_INTERNAL
#include "simcuda/names.h"
#endif

#endif /* SIMCUDA_CUDA_H_ */
