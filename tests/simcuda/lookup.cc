// cuGetProcAddress: by name, version and default-stream flag. Functions that are not simulated are not found, without a
// message: optional look-ups of programs must not be noisy. Layer: settings, entry. Threads: any.
// H100, H200, driver 580.159: with the flag, a name that has per-thread flavours has nothing else, from 7.0 on; what is
// not found is no error where the program asks for the status; flags may be set together.
#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>

#include "implemented.h"
#include "tests/simcuda/driver.h"
#include "tests/simcuda/entry.h"

namespace simcuda {
namespace {

struct Row {
  const char *name;
  int version;
  const char *symbol;
  void *address;
  const char *per_thread_symbol;
  void *per_thread_address;
};

// Read only: the addresses are relocations.
const Row kRows[] = {
#include "lookup.inc"
};

constexpr int kFirstPerThreadVersion = 7000;
constexpr cuuint64_t kFlags = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

void *unless_missing(const char *symbol, void *address) {
  const auto &missing = settings().missing;
  if (symbol == nullptr || std::find(missing.begin(), missing.end(), symbol) != missing.end()) return nullptr;
  return address;
}

void *address_in(const Row &row, bool per_thread) {
  return per_thread ? unless_missing(row.per_thread_symbol, row.per_thread_address)
                    : unless_missing(row.symbol, row.address);
}

struct Answer {
  void *address;
  CUdriverProcAddressQueryResult status;
};

Answer look_up(std::string_view name, int version, cuuint64_t flags) {
  const auto of_name =
      std::equal_range(std::begin(kRows), std::end(kRows), Row{name.data(), 0, "", nullptr, "", nullptr},
                       [](const Row &a, const Row &b) { return std::strcmp(a.name, b.name) < 0; });
  const std::span rows(of_name.first, of_name.second);
  const bool per_thread =
      (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0 &&
      std::any_of(rows.begin(), rows.end(), [](const Row &row) { return row.per_thread_symbol != nullptr; });
  const Row *newest = nullptr;
  bool known = false;
  for (const Row &row : rows) {
    if (per_thread && row.per_thread_symbol == nullptr) continue;
    known |= address_in(row, per_thread) != nullptr;
    if ((per_thread ? std::max(row.version, kFirstPerThreadVersion) : row.version) <= version) newest = &row;
  }
  if (!known) return {nullptr, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND};
  if (newest == nullptr) return {nullptr, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT};
  void *const address = address_in(*newest, per_thread);
  return {address, address == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS};
}

// Functions that no driver has, as one may that is newer than all who know it.
CUresult begin_capture_unheard_of(unsigned long long, CUstreamCaptureMode mode, CUstream stream) {
  return simcuda::cuStreamBeginCapture_v2(stream, mode);
}

CUresult unheard_of() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

// What a newer driver would find where this one finds nothing; nullptr: nothing either.
void *look_up_unheard_of(std::string_view name, int version, cuuint64_t flags) {
  if (name == "cuStreamBeginCaptureUnheardOf") return reinterpret_cast<void *>(begin_capture_unheard_of);
  const bool of_a_newer_driver = version > kDriverVersion && look_up(name, kDriverVersion, flags).address != nullptr;
  return of_a_newer_driver || name.find("UnheardOf") != name.npos ? reinterpret_cast<void *>(unheard_of) : nullptr;
}

}  // namespace

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *symbolStatus) {
  if (symbol != nullptr) note("%.80s@%d/%llu", symbol, cudaVersion, static_cast<unsigned long long>(flags));
  if (symbol == nullptr || pfn == nullptr || (flags & ~kFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (cudaVersion > kDriverVersion && !settings().unheard_of) return CUDA_ERROR_INVALID_VALUE;
  Answer answer = look_up(symbol, cudaVersion, flags);
  if (settings().unheard_of) {
    if (void *const found = look_up_unheard_of(symbol, cudaVersion, flags)) {
      answer = {found, CU_GET_PROC_ADDRESS_SUCCESS};
    }
  }
  *pfn = answer.address;
  if (symbolStatus != nullptr) *symbolStatus = answer.status;
  return answer.address != nullptr || symbolStatus != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags) {
  return simcuda::cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, nullptr);
}

}  // namespace simcuda
