// The variables of the start, and when they hold.
#include "config/start_environment.h"

#include <fstream>
#include <iterator>

#include "catch.h"
#include "config/settings_context.h"
#include "unit/config/written_files.h"

using namespace ration::config;
using namespace std::string_literals;

namespace {

using Entries = std::vector<std::string>;

Reading read_both(const Entries &now, const Entries &at_start) {
  std::vector<const char *> block;
  for (const std::string &entry : now) {
    block.push_back(entry.c_str());
  }
  block.push_back(nullptr);
  SettingsContext context;
  context.environment = block.data();
  context.at_start = at_start;
  Reading reading;
  reading.settings = read_settings(context, reading.problems);
  return reading;
}

std::uint64_t limit_of(const Entries &now, const Entries &at_start) {
  return read_both(now, at_start).settings.limit_on(device(0)).bytes;
}

constexpr std::uint64_t kGiB = 1ull << 30;

}  // namespace

TEST_CASE("the text of the start lies in memory as the kernel tells it") {
  std::ifstream told("/proc/self/environ", std::ios::binary);
  const std::string wanted((std::istreambuf_iterator<char>(told)), {});
  CHECK(text_at_start() == wanted);
}

TEST_CASE("of the text of the start only the entries of settings are taken") {
  CHECK(entries_of_settings("A=1\0RATION_LIMIT=1g\0HOME=/h\0CUDA_DEVICE_MEMORY_LIMIT_3=1g\0PATH=/bin\0"s) ==
        Entries{"RATION_LIMIT=1g", "HOME=/h", "CUDA_DEVICE_MEMORY_LIMIT_3=1g"});
  CHECK(entries_of_settings("RATION_MODE=\0RATION_LIMIT=a=b\0RATION_LIMIT=2g\0"s) ==
        Entries{"RATION_MODE=", "RATION_LIMIT=a=b", "RATION_LIMIT=2g"});
}

TEST_CASE("what a program wrote over the text is passed over") {
  CHECK(entries_of_settings("").empty());
  CHECK(entries_of_settings("\0\0\0"s).empty());
  CHECK(entries_of_settings("title RATION_LIMIT=1g\0\0\0IMIT=1g\0RATION_LIMITS=1g\0RATION_LIMIT\0=1g\0"s).empty());
  CHECK(entries_of_settings("RATION_MODE=pool\0RATION_LIMIT=1"s) == Entries{"RATION_MODE=pool"});  // cut off
}

TEST_CASE("a variable that is absent holds as it was at the start; a present one counts, an empty one too") {
  CHECK(limit_of({}, {"RATION_LIMIT=1g"}) == kGiB);
  CHECK(limit_of({"RATION_LIMIT=2g"}, {"RATION_LIMIT=1g"}) == 2 * kGiB);
  CHECK(limit_of({"RATION_LIMIT=2g"}, {}) == 2 * kGiB);
  CHECK(limit_of({"RATION_LIMIT="}, {"RATION_LIMIT=1g"}) == kStrictest);
  CHECK(limit_of({"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT="}, {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G"}) == kSixteenGiB);
  CHECK(limit_of({}, {"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G"}) == kGiB);
  CHECK(limit_of({"CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=0=1G"}, {"RATION_LIMIT=2g"}) == kGiB);
  CHECK(read_both({"RATION_MODE="}, {"RATION_MODE=direct"}).settings.mode == Mode::kPool);
  CHECK(read_both({}, {"RATION_MODE=direct"}).settings.mode == Mode::kDirect);
}

TEST_CASE("two values of the start for one absent variable are a contradiction") {
  CHECK(limit_of({}, {"RATION_LIMIT=15g", "RATION_LIMIT=14g"}) == kStrictest);
  CHECK(limit_of({"RATION_LIMIT=15g"}, {"RATION_LIMIT=15g", "RATION_LIMIT=14g"}) == 15 * kGiB);
}

TEST_CASE("the place of the user's file at the start holds") {
  const WrittenFiles files;
  files.user(R"({"limit": "1GiB"})");
  CHECK(limit_of({}, {"XDG_CONFIG_HOME=" + files.path("user")}) == kGiB);
  CHECK(limit_of({"XDG_CONFIG_HOME=" + files.path("system")}, {"XDG_CONFIG_HOME=" + files.path("user")}) ==
        kSixteenGiB);
}
