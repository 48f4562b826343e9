// Look-ups in the hook table: by name, version and flag, and by the address that a driver returned.
#include "driver/functions.h"

#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "catch.h"

using namespace ration::driver;

namespace {

constexpr cuuint64_t kDefault = CU_GET_PROC_ADDRESS_DEFAULT;
constexpr cuuint64_t kPerThread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;

// The exports of a driver, for resolve().
std::map<std::string, void *> exports;
void *look_up(void *, const char *name) {
  const auto found = exports.find(name);
  return found != exports.end() ? found->second : nullptr;
}

char places[kHookCount + 1];

void export_every_row() {
  exports.clear();
  for (unsigned row = 0; row < kHookCount; ++row) {
    exports[identities[row].symbol] = &places[row];
  }
}

// Fills `real` for one test, as from a driver with these exports.
class ResolvedDriver {
 public:
  ResolvedDriver() {
    export_every_row();
    real.resolve(nullptr, look_up);
  }
  ~ResolvedDriver() {
    exports.clear();
#define RATION_HOOK(symbol, parameters, name, since, stream, need, closed) real.symbol.set(nullptr);
#include "hook_table.inc"
#undef RATION_HOOK
  }
};

std::string named(const char *name, int version, cuuint64_t flags = kDefault) {
  const NamedHook found = by_name(name, version, flags);
  return found.match == Match::none ? "none" : identities[static_cast<unsigned>(found.hook)].symbol;
}

// The last version for which a row is the one that its name means, under its flag.
int last_version_of(unsigned row) {
  for (unsigned other = row + 1; other < kHookCount; ++other) {
    if (std::strcmp(identities[other].name, identities[row].name) == 0 &&
        identities[other].stream == identities[row].stream) {
      return identities[other].since - 1;
    }
  }
  return kKnownVersion;
}

cuuint64_t flag_of(unsigned row) {
  return identities[row].stream == Stream::per_thread ? kPerThread : kDefault;
}

void report(unsigned covered) {
  std::printf("covered: %u of %u\n", covered, kHookCount);
  CHECK(covered == kHookCount);
}

}  // namespace

TEST_CASE("a name means each row from its first version to the one before the next") {
  unsigned covered = 0;
  for (unsigned row = 0; row < kHookCount; ++row) {
    const Identity &identity = identities[row];
    INFO(identity.symbol);
    const int last = last_version_of(row);
    REQUIRE(identity.since <= last);
    bool all = true;
    for (const int version : {identity.since, last}) {
      const NamedHook found = by_name(identity.name, version, flag_of(row));
      all = all && found.match == Match::known && found.hook == static_cast<Hook>(row);
    }
    CHECK(all);
    CHECK(named(identity.name, identity.since - 1, flag_of(row)) != identity.symbol);
    covered += all ? 1 : 0;
  }
  report(covered);
}

TEST_CASE("rows of one name ascend by version, a per-thread row after its plain one") {
  for (unsigned row = 1; row < kHookCount; ++row) {
    for (unsigned before = 0; before < row; ++before) {
      if (std::strcmp(identities[before].name, identities[row].name) == 0) {
        INFO(identities[row].symbol);
        CHECK(std::pair(identities[before].since, identities[before].stream) <
              std::pair(identities[row].since, identities[row].stream));
      }
    }
  }
}

TEST_CASE("the name for creating a context means the newest function of the version") {
  CHECK(named("cuCtxCreate", 1999) == "none");
  CHECK(named("cuCtxCreate", 2000) == "cuCtxCreate");
  CHECK(named("cuCtxCreate", 3010) == "cuCtxCreate");
  CHECK(named("cuCtxCreate", 3020) == "cuCtxCreate_v2");
  CHECK(named("cuCtxCreate", 11030) == "cuCtxCreate_v2");
  CHECK(named("cuCtxCreate", 11040) == "cuCtxCreate_v3");
  CHECK(named("cuCtxCreate", 12050) == "cuCtxCreate_v4");
  CHECK(named("cuCtxCreate", 13000) == "cuCtxCreate_v4");
}

TEST_CASE("the per-thread flag prefers the per-thread row and falls back to the only one") {
  CHECK(named("cuMemFreeAsync", 12000, kDefault) == "cuMemFreeAsync");
  CHECK(named("cuMemFreeAsync", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM) == "cuMemFreeAsync");
  CHECK(named("cuMemFreeAsync", 12000, kPerThread) == "cuMemFreeAsync_ptsz");
  CHECK(named("cuMemAlloc", 12000, kPerThread) == "cuMemAlloc_v2");
}

TEST_CASE("only the whole plain name in its exact case is found") {
  for (const char *name : {"cuMemAlloc_v2", "cuMemAll", "cumemalloc", "cuMemAllocX", "", "cuModuleGetFunction"}) {
    CHECK(named(name, 13000) == "none");
  }
}

TEST_CASE("a version newer than the table is found and reported as unknown") {
  CHECK(by_name("cuMemAlloc", kKnownVersion, 0).match == Match::known);
  CHECK(by_name("cuMemAlloc", kKnownVersion + 10, 0).match == Match::unknown_version);
  CHECK(by_name("cuMemAlloc", kKnownVersion, 4).match == Match::unknown_version);
  CHECK(by_name("cuMemAlloc", kKnownVersion, kPerThread | 8).match == Match::unknown_version);
  CHECK(by_name("cuMemAlloc", kKnownVersion, kPerThread | CU_GET_PROC_ADDRESS_LEGACY_STREAM).match == Match::known);
  CHECK(by_name("cuModuleGetFunction", kKnownVersion + 10, 0).match == Match::none);
}

TEST_CASE("every row is found by the address of its export, and only under its own name") {
  const ResolvedDriver driver;
  unsigned covered = 0;
  for (unsigned row = 0; row < kHookCount; ++row) {
    const Identity &identity = identities[row];
    INFO(identity.symbol);
    const NamedHook found = by_address(&places[row], identity.name, identity.since, flag_of(row));
    const bool right = found.match == Match::known && found.hook == static_cast<Hook>(row);
    CHECK(right);
    CHECK(by_address(&places[row], "cuModuleGetFunction", identity.since, flag_of(row)).match == Match::none);
    CHECK(real.hooked(static_cast<Hook>(row)) == &places[row]);
    covered += right ? 1 : 0;
  }
  report(covered);
}

TEST_CASE("an address identifies its row even where version and flag mean another one") {
  const ResolvedDriver driver;
  const auto v2 = static_cast<unsigned>(Hook::cuCtxCreate_v2);
  CHECK(by_address(&places[v2], "cuCtxCreate", 13000, 0).hook == Hook::cuCtxCreate_v2);
  CHECK(by_address(&places[v2], "cuCtxCreate", kKnownVersion + 10, 0).match == Match::known);
  const auto plain = static_cast<unsigned>(Hook::cuMemFreeAsync);
  CHECK(by_address(&places[plain], "cuMemFreeAsync", 13000, kPerThread).hook == Hook::cuMemFreeAsync);
}

TEST_CASE("an unknown address matches no row") {
  const ResolvedDriver driver;
  CHECK(by_address(&places[kHookCount], "cuMemAlloc", 13000, 0).match == Match::none);
}

TEST_CASE("the version decides between two exports at one address") {
  const ResolvedDriver driver;
  real.cuDevicePrimaryCtxRelease.set(&places[0]);
  real.cuDevicePrimaryCtxRelease_v2.set(&places[0]);
  CHECK(by_address(&places[0], "cuDevicePrimaryCtxRelease", 10000, 0).hook == Hook::cuDevicePrimaryCtxRelease);
  CHECK(by_address(&places[0], "cuDevicePrimaryCtxRelease", 12000, 0).hook == Hook::cuDevicePrimaryCtxRelease_v2);
  CHECK(by_address(&places[0], "cuDevicePrimaryCtxRelease", 1000, 0).hook == Hook::cuDevicePrimaryCtxRelease);
}

TEST_CASE("a row without an export adopts the address that the driver returns, once") {
  export_every_row();
  exports.erase("cuCtxCreate_v4");
  const auto functions = std::make_unique<Functions>();
  functions->resolve(nullptr, look_up);
  CHECK(functions->hooked(Hook::cuCtxCreate_v4) == nullptr);
  CHECK_FALSE(functions->cuCtxCreate_v4.present());
  functions->adopt(Hook::cuCtxCreate_v4, &places[1]);
  CHECK(functions->hooked(Hook::cuCtxCreate_v4) == &places[1]);
  functions->adopt(Hook::cuCtxCreate_v4, &places[2]);
  CHECK(functions->hooked(Hook::cuCtxCreate_v4) == &places[1]);
  functions->resolve(nullptr, look_up);  // the driver is opened again
  CHECK(functions->hooked(Hook::cuCtxCreate_v4) == &places[1]);
  exports.clear();
}

TEST_CASE("an address adopted for one row changes no other") {
  const auto functions = std::make_unique<Functions>();
  unsigned covered = 0;
  for (unsigned row = 0; row < kHookCount; ++row) {
    functions->adopt(static_cast<Hook>(row), &places[row]);
    bool right = functions->hooked(static_cast<Hook>(row)) == &places[row];
    for (unsigned other = row + 1; other < kHookCount; ++other) {
      right = right && functions->hooked(static_cast<Hook>(other)) == nullptr;
    }
    covered += right ? 1 : 0;
  }
  report(covered);
}

TEST_CASE("the first required function that a driver lacks is reported") {
  export_every_row();
  exports.erase("cuMemAllocPitch_v2");
  const auto whole = std::make_unique<Functions>();
  whole->resolve(nullptr, look_up);
  CHECK(whole->missing_required() == nullptr);
  for (const char *required : {"cuMemAlloc_v2", "cuMemFree_v2"}) {
    export_every_row();
    exports.erase(required);
    const auto lacking = std::make_unique<Functions>();
    lacking->resolve(nullptr, look_up);
    REQUIRE(lacking->missing_required() != nullptr);
    CHECK(std::string(lacking->missing_required()) == required);
  }
  exports.clear();
}

TEST_CASE("a slot calls the function that it was set to") {
  Slot<CUresult(int *, int)> slot;
  CHECK_FALSE(slot.present());
  CUresult (*const function)(int *, int) = [](int *place, int value) {
    *place = value;
    return CUDA_ERROR_NOT_READY;
  };
  slot.set(reinterpret_cast<void *>(function));
  int place = 0;
  CHECK(slot(&place, 7) == CUDA_ERROR_NOT_READY);
  CHECK(place == 7);
}
