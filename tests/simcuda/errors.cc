// Names and texts of result codes. Layer: none. Threads: any.
#include "implemented.h"

namespace simcuda {
namespace {

struct Error {
  CUresult code;
  const char *name;
  const char *text;
};

constexpr Error kErrors[] = {
#define SIMCUDA_ERROR(code, text) {code, #code, text},
#include "tests/simcuda/errors.inc"
#undef SIMCUDA_ERROR
};

const Error *find(CUresult code) {
  for (const Error &error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

}  // namespace

CUresult cuGetErrorName(CUresult error, const char **pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error *found = find(error);
  *pStr = found == nullptr ? nullptr : found->name;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **pStr) {
  if (pStr == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Error *found = find(error);
  *pStr = found == nullptr ? nullptr : found->text;
  return found == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

}  // namespace simcuda
