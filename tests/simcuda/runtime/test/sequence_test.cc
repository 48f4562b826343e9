// The small runtime calls the driver in exactly the measured sequence of the real one. Runs the observed programs.

#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "catch.h"

namespace {

using Lines = std::vector<std::string>;

struct Run {
  int status = -1;
  Lines output;
  Lines trace;  // the driver calls in order, without look-ups

  long count(const std::string &call) const { return std::count(trace.begin(), trace.end(), call); }
};

Lines read_lines(const std::filesystem::path &path) {
  Lines lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

Run run(const std::string &program, const std::string &mode, const char *driver_folder, int devices) {
  char folder[] = "/tmp/simcudart.XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::filesystem::path output = std::filesystem::path(folder) / "output";
  const std::filesystem::path trace = std::filesystem::path(folder) / "trace";
  const std::string command = std::string("LD_LIBRARY_PATH=") + driver_folder + " SIMCUDA_TRACE=" + trace.string() +
                              " SIMCUDA_DEVICES=" + std::to_string(devices) + "x8GiB " + program + " " + mode + " > " +
                              output.string();
  Run result;
  result.status = std::system(command.c_str());
  result.output = read_lines(output);
  for (const std::string &line : read_lines(trace)) {
    const std::string call = line.substr(0, line.find(' '));
    if (call.rfind("cuGetProcAddress", 0) != 0) result.trace.push_back(call);
  }
  std::filesystem::remove_all(folder);
  return result;
}

// Whether `calls` contains `expected` as consecutive calls.
bool stands_in(const Lines &calls, const Lines &expected) {
  return std::search(calls.begin(), calls.end(), expected.begin(), expected.end()) != calls.end();
}

Lines expected_look_ups() {
  struct Row {
    const char *name;
    int version;
    int flags;
  };
  const std::vector<Row> rows = {
#define SIMCUDART_LOOKUP(name, version, flags, symbol) {name, version, flags},
#include "driver_lookups.inc"
#undef SIMCUDART_LOOKUP
  };
  Lines lines = {"look-up through dlsym: \"\" 0 0"};
  for (size_t i = 0; i < rows.size(); ++i) {
    lines.push_back(std::string("look-up through ") + (i < 3 ? "dlsym" : "cuGetProcAddress") + ": \"" + rows[i].name +
                    "\" " + std::to_string(rows[i].version) + " " + std::to_string(rows[i].flags));
  }
  return lines;
}

const std::string kPrograms[] = {SIMCUDART_OBSERVED_STATIC, SIMCUDART_OBSERVED_SHARED};

}  // namespace

TEST_CASE("the runtime opens the driver once, asks dlsym once and makes 440 look-ups in the measured order") {
  const Lines look_ups = expected_look_ups();
  REQUIRE(look_ups.size() == 440);
  CHECK(look_ups[1] == "look-up through dlsym: \"cuInit\" 2000 0");
  CHECK(look_ups[2] == "look-up through dlsym: \"cuGetProcAddress\" 11030 0");
  CHECK(look_ups[3] == "look-up through dlsym: \"cuGetProcAddress\" 12000 0");
  Lines expected = {"dlopen libcuda.so.1 2", "dlsym cuGetProcAddress_v2"};
  expected.insert(expected.end(), look_ups.begin(), look_ups.end());
  for (const std::string &program : kPrograms) {
    CAPTURE(program);
    const Run seen = run(program, "query", SIMCUDART_DRIVER, 1);
    CHECK(seen.status == 0);
    CHECK(seen.output == expected);
    const auto met = std::count_if(look_ups.begin(), look_ups.end(),
                                   [&](const std::string &look_up) { return stands_in(seen.output, {look_up}); });
    std::printf("covered: %td of %zu look-ups\n", met, look_ups.size());
  }
}

TEST_CASE("start-up queries every device once, in the measured order, and properties need no further queries") {
  constexpr int kDevices = 2;
  for (const std::string &program : kPrograms) {
    CAPTURE(program);
    const Run seen = run(program, "query", SIMCUDART_DRIVER, kDevices);
    Lines expected = {"cuDriverGetVersion", "cuInit", "cuModuleGetLoadingMode", "cuDeviceGetCount"};
    for (int device = 0; device < kDevices; ++device) {
      for (const char *call : {"cuDeviceGet", "cuDeviceGetName", "cuDeviceTotalMem_v2"}) expected.push_back(call);
      expected.insert(expected.end(), 111, "cuDeviceGetAttribute");
      expected.push_back("cuDeviceGetUuid");
    }
    CHECK(seen.trace == expected);
  }
}

TEST_CASE("the first allocation creates the primary context, and exit releases it without freeing the allocation") {
  for (const std::string &program : kPrograms) {
    CAPTURE(program);
    const Run seen = run(program, "allocate", SIMCUDART_DRIVER, 1);
    CHECK(seen.status == 0);
    // The query of the current context and SetCurrent stand for the real runtime's private tables.
    CHECK(stands_in(seen.trace, {"cuDeviceGetUuid", "cuCtxGetCurrent", "cuCtxSetCurrent", "cuDevicePrimaryCtxRetain",
                                 "cuCtxSetCurrent", "cuCtxGetCurrent", "cuCtxGetDevice_v2", "cuMemAlloc_v2"}));
    REQUIRE_FALSE(seen.trace.empty());
    CHECK(seen.trace.back() == "cuDevicePrimaryCtxRelease");
    CHECK(seen.count("cuDevicePrimaryCtxRelease") == 1);
    CHECK(seen.count("cuMemFree_v2") == 0);
    CHECK(seen.count("cuGetExportTable") == 0);
  }
}

TEST_CASE("without cuGetProcAddress_v2 the runtime looks up every export with dlsym and works with those it finds") {
  for (const std::string &program : kPrograms) {
    CAPTURE(program);
    const Run seen = run(program, "allocate", SIMCUDART_SMALL_DRIVER, 1);
    Lines expected = {"dlopen libcuda.so.1 2", "dlsym cuGetProcAddress_v2"};
#define SIMCUDART_LOOKUP(name, version, flags, symbol) expected.push_back(std::string("dlsym ") + symbol);
#include "driver_lookups.inc"
#undef SIMCUDART_LOOKUP
    expected.push_back("cudaMalloc 0");
    expected.push_back("cudaStreamCreate 36");  // this driver has no cuStreamCreate
    CHECK(seen.status == 0);
    CHECK(seen.output == expected);
  }
}
