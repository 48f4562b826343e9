#include "site.h"

#include <simcuda/simcuda.h>

#include <algorithm>

#include "work.h"

namespace preload::pool {
namespace {

void fill_words(const simcuda_launch *launch) {
  const auto address = *static_cast<const CUdeviceptr *>(launch->params[0]);
  const auto words = *static_cast<const std::uint64_t *>(launch->params[1]);
  const auto value = *static_cast<const std::uint32_t *>(launch->params[2]);
  std::fill_n(static_cast<std::uint32_t *>(simcuda_host_view(address)), words, value);
}

// The context is current from here on.
bool equip(Site *site, Verdict &verdict) {
  CUmodule module = nullptr;
  return verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(site->context)) &&
         verdict.succeeded("cuModuleLoadData", cuModuleLoadData(&module, "any image")) &&
         verdict.succeeded("cuModuleGetFunction", cuModuleGetFunction(&site->fill, module, "fill_words")) &&
         verdict.succeeded("cuMemAlloc of a source", cuMemAlloc_v2(&site->late, kMostBytes)) &&
         verdict.succeeded("cuMemsetD8", cuMemsetD8_v2(site->late, kLateFromDevice, kMostBytes)) &&
         verdict.succeeded("cuCtxSynchronize", cuCtxSynchronize());
}

bool become_peers(Site &one, Site &other, Verdict &verdict) {
  return verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(one.context)) &&
         verdict.succeeded("cuCtxEnablePeerAccess", cuCtxEnablePeerAccess(other.context, 0));
}

bool make_green(Site *site, Verdict &verdict) {
  CUdevResource all = {};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  return verdict.succeeded("cuDeviceGetDevResource", cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM)) &&
         verdict.succeeded("cuDevResourceGenerateDesc", cuDevResourceGenerateDesc(&description, &all, 1)) &&
         verdict.succeeded("cuGreenCtxCreate", cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM)) &&
         verdict.succeeded("cuCtxFromGreenCtx", cuCtxFromGreenCtx(&site->context, green));
}

}  // namespace

const char *name_of(StreamKind kind) {
  switch (kind) {
    case StreamKind::kBlocking:
      return "a blocking stream";
    case StreamKind::kNonBlocking:
      return "a non-blocking stream";
    case StreamKind::kLegacy:
      return "the legacy stream";
    case StreamKind::kPerThread:
      return "the per-thread stream";
  }
  return "";
}

CUstream Desk::stream(StreamKind kind) const {
  switch (kind) {
    case StreamKind::kBlocking:
      return blocking;
    case StreamKind::kNonBlocking:
      return non_blocking;
    case StreamKind::kLegacy:
      return nullptr;
    case StreamKind::kPerThread:
      return CU_STREAM_PER_THREAD;
  }
  return nullptr;
}

std::vector<Site> make_sites(const SiteChoice &choice, Verdict &verdict) {
  const std::size_t parameters[] = {sizeof(CUdeviceptr), sizeof(std::uint64_t), sizeof(std::uint32_t)};
  simcuda_register_kernel("fill_words", fill_words, parameters, 3);
  std::vector<Site> sites(1);
  sites[0].name = "primary context";
  if (!verdict.succeeded("cuInit", cuInit(0)) ||
      !verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&sites[0].context, 0))) {
    return {};
  }
  if (choice.second_context) {
    Site made{.name = "created context"};
    verdict.succeeded("cuCtxCreate", cuCtxCreate_v2(&made.context, 0, 0));
    sites.push_back(made);
  }
  if (choice.green) {
    Site made{.name = "green context", .per_thread_stream = false};
    make_green(&made, verdict);
    sites.push_back(made);
  }
  if (choice.second_device) {
    Site made{.name = "peer", .device = 1};
    verdict.succeeded("cuDevicePrimaryCtxRetain", cuDevicePrimaryCtxRetain(&made.context, 1));
    // Each with each: a block that the driver serves beside a pool has the driver's own access, by context.
    for (Site &other : sites) {
      if (verdict.failed() || !other.per_thread_stream) continue;  // a green context has no peers
      become_peers(made, other, verdict);
      become_peers(other, made, verdict);
    }
    sites.push_back(made);
  }
  for (Site &site : sites) {
    if (verdict.failed() || !equip(&site, verdict)) return {};
  }
  return sites;
}

bool make_desk(const Site &site, Desk *desk, Verdict &verdict) {
  return verdict.succeeded("cuCtxSetCurrent", cuCtxSetCurrent(site.context)) &&
         verdict.succeeded("cuStreamCreate", cuStreamCreate(&desk->blocking, CU_STREAM_DEFAULT)) &&
         verdict.succeeded("cuStreamCreate", cuStreamCreate(&desk->non_blocking, CU_STREAM_NON_BLOCKING)) &&
         verdict.succeeded("cuStreamCreate", cuStreamCreate(&desk->capturing, CU_STREAM_NON_BLOCKING)) &&
         verdict.succeeded("cuMemAlloc of scratch", cuMemAlloc_v2(&desk->scratch, kScratchBytes + kFillerBytes));
}

}  // namespace preload::pool
