// Preallocation: settings and the size of a device become bytes.
#include "catch.h"
#include "config/settings.h"
#include "unit/config/environment.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;

Settings::Preallocation on_sixteen_gib(std::initializer_list<std::string> entries, int ordinal = 0) {
  return read(entries).settings.preallocation_on(device(ordinal));
}

}  // namespace

TEST_CASE("a limit from any source is preallocated whole") {
  CHECK(on_sixteen_gib({"RATION_LIMIT=8GiB"}).bytes == 8 * kGiB);
  CHECK(on_sixteen_gib({"RATION_LIMIT=40%"}).bytes == 6871947673);
  CHECK(on_sixteen_gib({"RATION_LIMIT=100%"}).bytes == kSixteenGiB);
  CHECK(on_sixteen_gib({"RATION_LIMIT=100GiB"}).bytes == kSixteenGiB);
  CHECK(on_sixteen_gib({"RATION_RESERVE=2GiB"}).bytes == 14 * kGiB);
  CHECK(on_sixteen_gib({"RATION_GROUP_LIMIT=3GiB"}).bytes == 3 * kGiB);
  CHECK(on_sixteen_gib({"RATION_LIMIT=8GiB", "RATION_PREALLOCATE=true"}).bytes == 8 * kGiB);
}

TEST_CASE("without a limit nothing is preallocated, and 75 % of a device where something asks for it") {
  const std::string yes = "RATION_PREALLOCATE=true";
  for (const char *none : {"RATION_PREALLOCATE=auto", "RATION_RESERVE=0", "RATION_PREALLOCATE=on"}) {
    CHECK(on_sixteen_gib({none}).bytes == 0);
    CHECK(read({none}).settings.preallocation_on(device(0), true).bytes == kStrictest);
  }
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=auto", "RATION_LIMIT=8GiB"}).bytes == 8 * kGiB);
  CHECK(on_sixteen_gib({"RATION_LIMIT=0=8GiB"}, 1).bytes == 0);
  CHECK(on_sixteen_gib({"RATION_LIMIT=0=8GiB"}, 0).bytes == 8 * kGiB);
  CHECK(on_sixteen_gib({yes}).bytes == kStrictest);
  CHECK(on_sixteen_gib({yes, "RATION_RESERVE=0"}).bytes == kStrictest);
  CHECK(on_sixteen_gib({yes, "RATION_LIMIT=0=8GiB"}, 1).bytes == kStrictest);
  CHECK(on_sixteen_gib({"XLA_PYTHON_CLIENT_PREALLOCATE=true"}).bytes == kStrictest);
  CHECK(read({yes}).settings.preallocation_on(device(0, "", 7)).bytes == 5);  // truncated, no overflow below
  CHECK(read({yes}).settings.preallocation_on(device(0, "", UINT64_MAX)).bytes == UINT64_MAX / 4 * 3 + 2);
}

TEST_CASE("of a malformed limit the strictest reading is preallocated") {
  CHECK(on_sixteen_gib({"RATION_LIMIT=8Gib"}).bytes == kStrictest);
  CHECK(on_sixteen_gib({"RATION_LIMIT=0=8GiB,x"}).bytes == 8 * kGiB);
}

TEST_CASE("a requested size is preallocated, but at most the limit") {
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=2GiB"}).bytes == 2 * kGiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=0.9"}).bytes == 15461882265);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=100GiB"}).bytes == kSixteenGiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=2GiB", "RATION_LIMIT=1GiB"}).bytes == kGiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=50%", "RATION_LIMIT=25%"}).bytes == 4 * kGiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=25%", "RATION_LIMIT=50%"}).bytes == 4 * kGiB);  // of the device
}

TEST_CASE("preallocation can be turned off; a malformed switch does not turn it off") {
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=false"}).bytes == 0);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=false", "RATION_LIMIT=8GiB"}).bytes == 0);
  CHECK(read({"RATION_PREALLOCATE=false"}).settings.preallocation_on(device(0), true).bytes == 0);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE=off", "RATION_LIMIT=8GiB"}).bytes == 8 * kGiB);
}

TEST_CASE("a device is preallocated once 32 MiB are live, or as preallocate_after says") {
  CHECK(on_sixteen_gib({}).after == 32 * kMiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE_AFTER=0"}).after == 0);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE_AFTER=1GiB"}).after == kGiB);
  CHECK(on_sixteen_gib({"RATION_PREALLOCATE_AFTER=25%", "RATION_LIMIT=8GiB"}).after == 4 * kGiB);
}

TEST_CASE("the larger of 512 MiB and 2 % of the device stays free, or as headroom says") {
  CHECK(on_sixteen_gib({}).headroom == 512 * kMiB);
  CHECK(read({}).settings.preallocation_on(device(0, "", 144 * kGiB)).headroom == 3092376453);
  CHECK(on_sixteen_gib({"RATION_HEADROOM=0"}).headroom == 0);
  CHECK(on_sixteen_gib({"RATION_HEADROOM=1MiB"}).headroom == kMiB);
  CHECK(on_sixteen_gib({"RATION_HEADROOM=2%", "RATION_LIMIT=8GiB"}).headroom == 343597383);
}
