// Look-up by name, version and default-stream flag, for every row of the API catalogue; and every exported function.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/simcuda/conformance/fixture.h"

namespace simcuda::conformance {
namespace {

// Of the build, unless SIMCUDA_CATALOGUE names it: the tests may run on another machine.
nlohmann::json catalogue() {
  const char *elsewhere = std::getenv("SIMCUDA_CATALOGUE");
  std::ifstream file(elsewhere == nullptr ? SIMCUDA_CATALOGUE : elsewhere);
  REQUIRE(file.good());
  return nlohmann::json::parse(file);
}

// Names of OpenGL, EGL and VDPAU interoperation, which the catalogue leaves out.
std::vector<std::string> interop_exports() {
  const char *elsewhere = std::getenv("SIMCUDA_INTEROP");
  std::ifstream file(elsewhere == nullptr ? SIMCUDA_INTEROP : elsewhere);
  REQUIRE(file.good());
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (line.front() != '#') names.push_back(line);
  }
  return names;
}

struct Answer {
  CUresult result;
  void *address;
  CUdriverProcAddressQueryResult status;
};

Answer ask(const std::string &name, int version, cuuint64_t flags) {
  Answer answer{CUDA_ERROR_UNKNOWN, &answer, CU_GET_PROC_ADDRESS_SUCCESS};
  answer.result = cuGetProcAddress(name.c_str(), &answer.address, version, flags, &answer.status);
  return answer;
}

void *exported(const std::string &symbol) {
  return ::dlsym(RTLD_DEFAULT, symbol.c_str());
}

// The output on stderr while `body` runs.
template <class Body>
std::string errors_of(Body body) {
  std::FILE *file = std::tmpfile();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  body();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::rewind(file);
  std::string text;
  for (int c = std::fgetc(file); c != EOF; c = std::fgetc(file)) text += static_cast<char>(c);
  std::fclose(file);
  return text;
}

// The functions that the simulator lacks, found by calling all that the look-up does not return.
bool is_loud(const std::string &symbol) {
  CUresult result = CUDA_SUCCESS;
  const std::string text = errors_of([&] { result = reinterpret_cast<CUresult (*)()>(exported(symbol))(); });
  return result == CUDA_ERROR_NOT_SUPPORTED && text == "simcuda: " + symbol + " is not simulated\n";
}

std::string text_of(const nlohmann::json &value) {
  return value.is_null() ? "" : value.get<std::string>();
}

int driver_version() {
  int version = 0;
  REQUIRE(cuDriverGetVersion(&version) == CUDA_SUCCESS);
  return version;
}

// What a look-up with the per-thread flag finds: H100, H200, driver 580.159: where the name has any such flavour
// nothing else, and nothing below 7.0.
std::string per_thread_export(const nlohmann::json &row, const std::set<std::string> &with_flavours) {
  if (with_flavours.count(row.at("name")) == 0) return row.at("export");
  return row.at("min_version") < 7000 ? "" : text_of(row.at("per_thread_export"));
}

TEST_CASE("every row of the look-up catalogue is found from its version on, or reports itself and is not found") {
  start_driver();
  const auto rows = catalogue().at("get_proc_address");
  std::size_t covered = 0, simulated = 0;
  std::set<std::string> with_flavours;
  for (const auto &row : rows) {
    if (!row.at("per_thread_export").is_null()) with_flavours.insert(row.at("name"));
  }
  for (const auto &row : rows) {
    const std::string name = row.at("name"), symbol = row.at("export"),
                      threaded_symbol = per_thread_export(row, with_flavours);
    const int version = row.at("min_version");
    const Answer legacy = ask(name, version, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
    const Answer plain = ask(name, version, CU_GET_PROC_ADDRESS_DEFAULT);
    const Answer threaded = ask(name, version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    INFO(symbol);
    ++covered;
    // H100, driver 580.159: a version above the driver's is 1
    const CUresult expected = version > driver_version() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    for (const Answer &one : {legacy, plain, threaded}) CHECK(one.result == expected);
    if (expected != CUDA_SUCCESS) continue;
    CHECK(plain.address == legacy.address);
    if (simulator() && legacy.address == nullptr) {
      CHECK(legacy.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
      CHECK(threaded.address == nullptr);
      CHECK(is_loud(symbol));
      continue;
    }
    CHECK(legacy.address == exported(symbol));
    CHECK(legacy.status == CU_GET_PROC_ADDRESS_SUCCESS);
    CHECK(threaded.address == (threaded_symbol.empty() ? nullptr : exported(threaded_symbol)));
    ++simulated;
  }
  std::cout << "covered: " << covered << " of " << rows.size() << " look-up rows (" << simulated << " handed out)\n";
  CHECK(covered == rows.size());
}

TEST_CASE("every export of the driver's version exists, and is simulated or reports itself") {
  start_driver();
  const auto rows = catalogue().at("exports");
  std::vector<std::string> names = interop_exports();
  for (const auto &row : rows) {
    if (row.at("cuda_version") <= driver_version()) names.push_back(row.at("symbol"));
  }
  std::size_t covered = 0;
  unsigned implemented = 0;
  std::string lacking;
  for (const std::string &name : names) {
    if (exported(name) != nullptr) {
      ++covered;
    } else {
      lacking += " " + name;
    }
  }
  INFO("lacking:" << lacking);
  // H100, H200, driver 580.159: one name of the stub library of 13.0 is no export; which was not recorded
  CHECK(names.size() - covered <= (simulator() ? 0u : 1u));
  if (simulator()) CHECK(simulator().exports(&implemented) == names.size());
  std::cout << "covered: " << covered << " of " << names.size() << " exports (" << implemented << " simulated, "
            << covered - implemented << " fail loudly)\n";
}

TEST_CASE(
    "the exports of interoperation with OpenGL, EGL and VDPAU exist, answer NOT_SUPPORTED and are not looked up") {
  if (!simulator()) return;
  for (const std::string &name : interop_exports()) {
    INFO(name);
    REQUIRE(exported(name) != nullptr);
    CHECK(is_loud(name));
    CHECK(ask(name, 13000, 0).address == nullptr);
  }
}

TEST_CASE("the look-up returns the newest version up to the requested one") {
  start_driver();
  CHECK(ask("cuGetProcAddress", 11030, 0).address == exported("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 11080, 0).address == exported("cuGetProcAddress"));
  CHECK(ask("cuGetProcAddress", 12000, 0).address == exported("cuGetProcAddress_v2"));
  CHECK(ask("cuCtxCreate", 3010, 0).address == exported("cuCtxCreate"));
  CHECK(ask("cuCtxCreate", 11030, 0).address == exported("cuCtxCreate_v2"));
  CHECK(ask("cuCtxCreate", 12000, 0).address == exported("cuCtxCreate_v3"));
  CHECK(ask("cuCtxCreate", 13000, 0).address == exported("cuCtxCreate_v4"));
  CHECK(ask("cuDevicePrimaryCtxReset", 7000, 0).address == exported("cuDevicePrimaryCtxReset"));
  CHECK(ask("cuDevicePrimaryCtxReset", 11000, 0).address == exported("cuDevicePrimaryCtxReset_v2"));
  CHECK(ask("cuMemFreeAsync", 12000, 2).address == exported("cuMemFreeAsync_ptsz"));
  CHECK(ask("cuMemAlloc", 12000, 2).address == exported("cuMemAlloc_v2"));
}

TEST_CASE("a failed look-up returns its reason") {
  start_driver();
  // H200, driver 580.159: the call succeeds, with the reason in the status
  const Answer unknown = ask("cuNoSuchFunction", 12000, 0);
  CHECK(unknown.result == CUDA_SUCCESS);
  CHECK(unknown.status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  CHECK(unknown.address == nullptr);
  const Answer early = ask("cuCtxGetId", 11000, 0);
  CHECK(early.result == CUDA_SUCCESS);
  CHECK(early.status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(ask("", 0, 0).result == CUDA_SUCCESS);
  CHECK(ask("cuMemAlloc", 99000, 0).result == CUDA_ERROR_INVALID_VALUE);
  CHECK(ask("cuMemAlloc", 12000, 3).result == CUDA_SUCCESS);  // both flags
  void *address = nullptr;
  CHECK(cuGetProcAddress("cuInit", &address, 12000, 0, nullptr) == CUDA_SUCCESS);
  if (!simulator()) return;  // a null pointer ends the process; a look-up without a status was not asked
  CHECK(ask("cuMemAlloc", 12000, 4).result == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress(nullptr, &address, 12000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress("cuInit", nullptr, 12000, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuGetProcAddress("cuNoSuchFunction", &address, 12000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
}

TEST_CASE("there are no export tables") {
  if (!simulator()) return;
  const void *table = nullptr;
  CUuuid any = {};
  CHECK(cuGetExportTable(&table, &any) == CUDA_ERROR_NOT_FOUND);
  CHECK(table == nullptr);
}

TEST_CASE("calls are counted by export, refused ones too") {
  if (!simulator()) return;
  const CurrentContext context;
  simulator().calls_reset();
  const CUdeviceptr address = device_memory(16);
  CHECK(cuMemFree(address) == CUDA_SUCCESS);
  CHECK(cuMemFree(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(simulator().calls("cuMemAlloc_v2") == 1);
  CHECK(simulator().calls("cuMemFree_v2") == 2);
  CHECK(simulator().calls("cuMemGetInfo_v2") == 0);
  CHECK(simulator().calls("cuMemAlloc_v99") == ~0ull);
}

}  // namespace
}  // namespace simcuda::conformance
