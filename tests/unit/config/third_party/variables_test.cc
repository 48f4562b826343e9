// Third-party variables: every documented value, and the line about a malformed one.
#include "config/third_party/third_party.h"

#include <algorithm>
#include <cstdio>

#include "catch.h"
#include "unit/config/written_files.h"

using namespace ration::config;

namespace {

constexpr std::uint64_t kGiB = 1ull << 30;
constexpr std::uint64_t kWhole = kSixteenGiB;

// The result of one environment: mode, limit of a device of 16 GiB, the process's own or its container's (0: none
// asked), preallocation ("-": the default), async preallocation, managed, backing. `dispositions` has one word for each
// third-party variable, in the order of the table.
struct Row {
  std::vector<std::string> entries;
  std::uint64_t limit;
  const char *others;  // what is not at its default
  const char *dispositions;
};

std::string text_of(const std::variant<Preallocate, Size> &value) {
  const Preallocate *kind = std::get_if<Preallocate>(&value);
  return kind == nullptr ? std::get<Size>(value).text() : *kind == Preallocate::kTrue ? "true" : "false";
}

std::string text_of(const std::variant<bool, Size> &value) {
  return std::holds_alternative<Size>(value) ? std::get<Size>(value).text() : std::get<bool>(value) ? "true" : "false";
}

std::string others_of(const Settings &settings) {
  std::string text;
  for (const Origin &origin : settings.origins) {
    if (origin.source != Source::kThirdParty || origin.key == "limit" || origin.key == "container_limit") {
      continue;
    }
    text += text.empty() ? "" : " ";
    text += origin.key + "=";
    if (origin.key == "mode") {
      text += settings.mode == Mode::kPool ? "pool" : settings.mode == Mode::kAsync ? "async" : "direct";
    } else if (origin.key == "preallocate") {
      text += text_of(settings.preallocate);
    } else if (origin.key == "async_preallocate") {
      text += text_of(settings.async_preallocate);
    } else if (origin.key == "managed") {
      text += settings.managed == Managed::kCount ? "count" : "limit";
    } else if (origin.key == "backing") {
      text += settings.backing == Backing::kVmm ? "vmm" : "slab";
    }
  }
  return text;
}

std::string dispositions_of(const Settings &settings) {
  std::string text;
  for (const ThirdPartyVariable &word : settings.third_party) {
    text += text.empty() ? "" : " ";
    text += name_of(word.disposition);
  }
  return text;
}

const std::string kFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION=";
const std::string kNewFraction = "XLA_CLIENT_MEM_FRACTION=";
const std::string kPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE=";
const std::string kAllocator = "XLA_PYTHON_CLIENT_ALLOCATOR=";
const std::string kAsync = "TF_CUDA_MALLOC_ASYNC_SUPPORTED_PREALLOC=";
const std::string kGrowth = "TF_FORCE_GPU_ALLOW_GROWTH=";
const std::string kUnified = "TF_FORCE_UNIFIED_MEMORY=";
const std::string kTf = "TF_GPU_ALLOCATOR=";
const std::string kDevice = "CUDA_DEVICE_MEMORY_LIMIT";
const std::string kPinned = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=";

const Row kRows[] = {
    // JAX: a fraction of the total, truncated to a byte.
    {{kFraction + "0.4"}, 6871947673, "", "honoured"},
    {{kNewFraction + "0.4"}, 6871947673, "", "honoured"},
    {{kFraction + ".5"}, kWhole / 2, "", "honoured"},
    {{kFraction + " 5e-1\t"}, kWhole / 2, "", "honoured"},
    {{kFraction + "+0.25"}, kWhole / 4, "", "honoured"},
    {{kFraction + "5."}, kWhole, "managed=count", "honoured"},
    {{kFraction + "25E-2"}, kWhole / 4, "", "honoured"},
    {{kFraction + "0.1234567890123456789999"}, 2120971485, "", "honoured"},
    {{kFraction + "1"}, kWhole, "", "honoured"},
    {{kFraction + "1.0"}, kWhole, "", "honoured"},
    {{kFraction + "1.5"}, kWhole, "managed=count", "honoured"},
    {{kFraction + "1e300"}, kWhole, "managed=count", "honoured"},
    {{kFraction + "0"}, kStrictest, "", "refused"},
    {{kFraction + "-0.5"}, kStrictest, "", "refused"},
    {{kFraction + "1e-30"}, kStrictest, "", "refused"},
    {{kFraction + "nan"}, kStrictest, "", "refused"},
    {{kFraction + "inf"}, kStrictest, "", "refused"},
    {{kFraction + "40%"}, kStrictest, "", "refused"},
    {{kFraction + "0,4"}, kStrictest, "", "refused"},
    {{kFraction + "0.2_5"}, kStrictest, "", "refused"},
    {{kFraction + "1e"}, kStrictest, "", "refused"},
    {{kFraction + "0x1"}, kStrictest, "", "refused"},
    {{kFraction}, 0, "", ""},
    {{kFraction + "0.4", kNewFraction + "0.5"}, 6871947673, "", "refused refused"},
    {{kFraction + "0.8", kNewFraction + "0.9"}, kStrictest, "", "refused refused"},
    {{kFraction + "0.4", kNewFraction}, 6871947673, "", "honoured"},
    // Its newer syntax: what it starts with, and how far it grows.
    {{kNewFraction + "0.75+"}, kWhole, "preallocate=75%", "honoured"},
    {{kNewFraction + "0.25-0.5"}, kWhole / 2, "preallocate=25%", "honoured"},
    {{kNewFraction + "0.5-0.5"}, kWhole / 2, "", "honoured"},
    {{kNewFraction + "0.25-0.5", kPreallocate + "false"}, kWhole / 2, "preallocate=false", "honoured honoured"},
    {{kNewFraction + "0.5-0.25"}, kStrictest, "", "refused"},
    {{kNewFraction + "0.5-1.5"}, kStrictest, "", "refused"},
    {{kNewFraction + "0.5-"}, kStrictest, "", "refused"},
    {{kNewFraction + "+"}, kStrictest, "", "refused"},
    {{kNewFraction + "-"}, kStrictest, "", "refused"},
    // Only three words mean false.
    {{kPreallocate + "false"}, 0, "preallocate=false", "honoured"},
    {{kPreallocate + "False"}, 0, "preallocate=false", "honoured"},
    {{kPreallocate + "0"}, 0, "preallocate=false", "honoured"},
    {{kPreallocate + "FALSE"}, 0, "preallocate=true", "honoured"},
    {{kPreallocate + "no"}, 0, "preallocate=true", "honoured"},
    {{kPreallocate + "off"}, 0, "preallocate=true", "honoured"},
    {{kPreallocate + "true"}, 0, "preallocate=true", "honoured"},
    {{kPreallocate}, 0, "", ""},
    // In upper or lower case.
    {{kAllocator + "platform"}, 0, "mode=direct", "honoured"},
    {{kAllocator + "Platform"}, 0, "mode=direct", "honoured"},
    {{kAllocator + "bfc"}, 0, "mode=pool", "honoured"},
    {{kAllocator + "default"}, 0, "mode=pool", "honoured"},
    {{kAllocator + "vmm"}, 0, "backing=vmm", "honoured"},
    {{kAllocator + "cuda_async"}, 0, "mode=async async_preallocate=true", "honoured"},
    {{kAllocator + "CUDA_ASYNC", kPreallocate + "0"}, 0, "mode=async preallocate=false", "honoured honoured"},
    {{kAllocator + "cuda_async", kAsync + "4096"}, 0, "mode=async async_preallocate=true", "honoured overridden"},
    {{kAllocator + "cuda_async", kPreallocate + "0", kAsync + "4096"},
     0,
     "mode=async preallocate=false async_preallocate=4KiB",
     "honoured honoured honoured"},
    {{kAllocator + "address"}, 0, "", "ignored"},
    {{kAllocator}, 0, "", ""},
    // TensorFlow.
    {{kTf + "cuda_malloc_async"}, 0, "mode=async", "honoured"},
    {{kTf + "CUDA_MALLOC_ASYNC"}, 0, "", "ignored"},
    {{kTf + "cuda_malloc"}, 0, "", "ignored"},
    {{kTf + "cuda_malloc_async", kAllocator + "platform"}, 0, "mode=direct", "honoured overridden"},
    {{kAsync + "1073741824"}, 0, "async_preallocate=1GiB", "honoured"},
    {{kAsync + "-1"}, 0, "async_preallocate=true", "honoured"},
    {{kAsync + "0"}, 0, "async_preallocate=false", "honoured"},
    {{kAsync + " 5 "}, 0, "async_preallocate=5", "honoured"},
    {{kAsync + "-2"}, 0, "", "ignored"},
    {{kAsync + "1g"}, 0, "", "ignored"},
    {{kAsync + "9223372036854775808"}, 0, "", "ignored"},
    {{kAsync}, 0, "", ""},
    {{kGrowth + "true"}, 0, "preallocate=false", "honoured"},
    {{kGrowth + "false"}, 0, "preallocate=true", "honoured"},
    {{kGrowth + "True"}, 0, "", "ignored"},
    {{kGrowth + "1"}, 0, "", "ignored"},
    {{kGrowth + "true", kPreallocate + "true"}, 0, "preallocate=true", "honoured overridden"},
    {{kUnified + "1"}, 0, "managed=count", "honoured"},
    {{kUnified + "TRUE"}, 0, "managed=count", "honoured"},
    {{kUnified + "false"}, 0, "", "ignored"},
    {{kUnified + "yes"}, 0, "", "ignored"},
    {{kUnified + "1", kFraction + "2"}, kWhole, "managed=count", "honoured overridden"},
    // Limits in bytes, of KAI, HAMi and MPS.
    {{"GPU_MEMORY_LIMIT=1073741824"}, kGiB, "", "honoured"},
    {{"GPU_MEMORY_LIMIT=1g"}, kStrictest, "", "refused"},
    {{"GPU_MEMORY_LIMIT=0"}, kStrictest, "", "refused"},
    {{"GPU_MEMORY_LIMIT=8"}, kStrictest, "", "refused"},
    {{"GPU_MEMORY_LIMIT=18446744073709551616"}, kStrictest, "", "refused"},
    {{"GPU_MEMORY_LIMIT="}, 0, "", ""},
    {{kDevice + "=1g"}, kGiB, "", "honoured"},
    {{kDevice + "=1G"}, kGiB, "", "honoured"},
    {{kDevice + "=1024m"}, kGiB, "", "honoured"},
    {{kDevice + "=1048576k"}, kGiB, "", "honoured"},
    {{kDevice + "=1073741824"}, kGiB, "", "honoured"},
    {{kDevice + "=0x40000000"}, kGiB, "", "honoured"},
    {{kDevice + "=010000000000"}, kGiB, "", "honoured"},
    {{kDevice + "=0"}, 0, "", "ignored"},
    {{kDevice + "=8GiB"}, kStrictest, "", "refused"},
    {{kDevice + "=8"}, kStrictest, "", "refused"},
    {{kDevice + "=-1g"}, kStrictest, "", "refused"},
    {{kDevice + "=99999999999g"}, kStrictest, "", "refused"},
    {{kDevice + "_0=1g"}, kGiB, "", "honoured"},
    {{kDevice + "_1=1g"}, 0, "", "honoured"},
    {{kDevice + "_0=2g", kDevice + "=1g"}, kGiB, "", "honoured honoured"},
    {{kDevice + "_0=1g", kDevice + "=2g"}, kGiB, "", "honoured honoured"},
    {{kDevice + "_X=1g"}, 0, "", ""},
    {{kDevice + "S=1g"}, 0, "", ""},
    {{kPinned + "0=1G,1=512MB"}, kGiB, "", "honoured"},
    {{kPinned + "0=1024M"}, kGiB, "", "honoured"},
    {{kPinned + " 0 = 1gb "}, kGiB, "", "honoured"},
    {{kPinned + "GPU-1f2e=1G"}, kGiB, "", "honoured"},
    {{kPinned + "1=1G"}, 0, "", "honoured"},
    {{kPinned + "0=1024"}, kStrictest, "", "refused"},
    {{kPinned + "1G"}, kStrictest, "", "refused"},
    {{kPinned + "0=1G,"}, kGiB, "", "refused"},
    {{kPinned + "0=1G,0=2G"}, kGiB, "", "refused"},
    // Of several the smallest holds. A limit of ours overrides all of them.
    {{kFraction + "0.5", "GPU_MEMORY_LIMIT=1073741824", kDevice + "=2g"}, kGiB, "", "honoured honoured honoured"},
    {{kFraction + "0.1", "RATION_LIMIT=8g", "GPU_MEMORY_LIMIT=x"}, 8 * kGiB, "", "overridden overridden"},
    // What the driver enforces itself applies in addition to ours.
    {{kPinned + "0=2G", "RATION_LIMIT=4g"}, 2 * kGiB, "", "honoured"},
    {{kPinned + "0=6G", "RATION_LIMIT=4g"}, 4 * kGiB, "", "honoured"},
    {{kPinned + "1=2G", "RATION_LIMIT=4g"}, 4 * kGiB, "", "honoured"},
    {{kPinned + "x", "RATION_LIMIT=4g"}, 4 * kGiB, "", "refused"},
    {{kPreallocate + "false", "RATION_PREALLOCATE=true"}, 0, "", "overridden"},
    {{kAllocator + "platform", "RATION_MODE=pool"}, 0, "", "overridden"},
    {{kFraction + "0.1", "RATION_LIMIT=x"}, kWhole / 10, "", "honoured"},
};

// The smaller of the process's own limit and those of its container; 0: none asked.
std::uint64_t limit_of(const Settings &settings, const DeviceIdentity &on = device(0, "GPU-1f2e")) {
  const Settings::Limit own = settings.limit_on(on);
  std::uint64_t least = own.asked ? own.bytes : UINT64_MAX;
  for (const Settings::Group &group : settings.groups) {
    least = std::min(least, settings.group_limit_on(group, on).value_or(UINT64_MAX));
  }
  return least == UINT64_MAX ? 0 : least;
}

Reading reading_of(const std::vector<std::string> &entries, const std::string &framework = "") {
  return WrittenFiles().read(entries, {}, false, framework);
}

}  // namespace

TEST_CASE("each value of a third-party variable has its documented effect or gets a line") {
  std::size_t covered = 0;
  for (const Row &row : kRows) {
    std::string entries;
    for (const std::string &entry : row.entries) {
      entries += entry + " ";
    }
    INFO(entries);
    const Reading reading = reading_of(row.entries);
    INFO(reading.lines());
    CHECK(limit_of(reading.settings) == row.limit);
    CHECK(others_of(reading.settings) == row.others);
    CHECK(dispositions_of(reading.settings) == row.dispositions);
    for (const ThirdPartyVariable &word : reading.settings.third_party) {
      CHECK_FALSE(word.reason.empty());
      const bool reported = reading.lines().find(word.variable + "=") != std::string::npos;
      CHECK((word.disposition != Disposition::kRefused || reported));
    }
    ++covered;
  }
  std::printf("covered: %zu of %zu\n", covered, std::size(kRows));
}

TEST_CASE("beside a framework its variables are left to it, and nothing is preallocated") {
  const std::vector<std::string> theirs = {
      kFraction + "0.4",         kNewFraction + "x", kPreallocate + "true", kAllocator + "platform",
      kTf + "cuda_malloc_async", kGrowth + "false",  kUnified + "1",        kAsync + "x"};
  const Reading reading = reading_of(theirs, "xla_cuda_plugin.so is loaded");
  CHECK(reading.problems.empty());
  CHECK_FALSE(reading.settings.limit_asked());
  CHECK(reading.settings.mode == Mode::kPool);
  CHECK(reading.settings.preallocation_on(device(0)).bytes == 0);
  CHECK(reading.settings.managed == Managed::kLimit);
  REQUIRE(reading.settings.third_party.size() == theirs.size());
  for (const ThirdPartyVariable &word : reading.settings.third_party) {
    CHECK(word.disposition == Disposition::kLeft);
    CHECK(word.reason.find("xla_cuda_plugin.so is loaded, which reads it itself") == 0);
  }
  CHECK(reading.settings.origin_of("preallocate")->written() == "xla_cuda_plugin.so is loaded");
}

TEST_CASE("beside a framework our own settings hold, and limits that it does not read itself") {
  const Reading reading = reading_of({"RATION_PREALLOCATE=1g", "GPU_MEMORY_LIMIT=2147483648"}, "libtensorflow.so");
  CHECK(reading.settings.preallocation_on(device(0)).bytes == kGiB);
  CHECK(limit_of(reading.settings) == 2 * kGiB);
}

TEST_CASE("a third-party limit for an absent device gets a line with its variable") {
  Reading reading = reading_of({kDevice + "_7=1g", kPinned + "0=1G,GPU-1f2e=2G"});
  CHECK(reading.problems.empty());
  reading.settings.resolve_devices({device(0, "GPU-1f2e")}, reading.problems);
  CHECK(reading.lines().find(kDevice + "_7=1g: there is no device \"7\", only 0 (GPU-1f2e") != std::string::npos);
  CHECK(reading.lines().find(kPinned + "0=1G,GPU-1f2e=2G: \"0\" and \"GPU-1f2e\" are one device with two limits") !=
        std::string::npos);
  CHECK(reading.settings.limit_on(device(0, "GPU-1f2e")).bytes == kGiB);
  CHECK(dispositions_of(reading.settings) == "ignored honoured");
  CHECK(reading.settings.origin_of("container_limit")->instead == "none");
  Reading partly = reading_of({kPinned + "0=1G,7=1G"});
  partly.settings.resolve_devices({device(0, "GPU-1f2e")}, partly.problems);
  CHECK(dispositions_of(partly.settings) == "honoured");
  CHECK(partly.settings.third_party[0].reason == "limit = 0=1GiB,7=1GiB; there is no device \"7\", only 0 (GPU-1f2e)");
  CHECK(partly.settings.origin_of("limit")->instead.empty());
  Reading own = reading_of({"RATION_LIMIT=7=1GiB"});
  own.settings.resolve_devices({device(0, "GPU-1f2e")}, own.problems);
  CHECK(own.settings.origin_of("limit")->in_force() == "none (RATION_LIMIT=7=1GiB is refused)");
}

TEST_CASE("the standing of a third-party variable names the likely cause, its remedy one that the variable takes") {
  const auto reason_of = [](const std::string &entry) {
    const Reading reading = reading_of({entry});
    return reading.settings.third_party.at(0).reason;
  };
  const auto says = [](const std::string &text, const char *part) { return text.find(part) != std::string::npos; };
  for (const char *entry : {"GPU_PORTION=“0.5”", "NVIDIA_GPU_MEMORY_LIMIT=“1024”", "CUDA_DEVICE_MEMORY_LIMIT=“1g”",
                            "TF_GPU_ALLOCATOR=“cuda_malloc_async”", "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT=“0=1G”",
                            "XLA_PYTHON_CLIENT_MEM_FRACTION=“0.5”", "TF_FORCE_UNIFIED_MEMORY=“1”"}) {
    INFO(entry);
    CHECK(says(reason_of(entry), "likely cause: typographic quotation marks"));
  }
  CHECK(says(reason_of("GPU_PORTION=50%"), "is not a fraction; write 0.75"));
  CHECK_FALSE(says(reason_of("GPU_PORTION=50%"), "0.75+"));
  CHECK(says(reason_of("NVIDIA_GPU_MEMORY_LIMIT=0"), "write the number of MiB, without a unit: 1024"));
  CHECK(says(reason_of("GPU_MEMORY_LIMIT=4096"), "write the number of bytes, without a unit"));
  CHECK(says(reason_of("CUDA_DEVICE_MEMORY_LIMIT=4096"), "is a unit missing?"));
  CHECK(reason_of("XLA_PYTHON_CLIENT_MEM_FRACTION=0.5-0.75") == "limit = 75%, preallocate = 50%");
  CHECK(reason_of("XLA_PYTHON_CLIENT_MEM_FRACTION=1.5") == "limit = 100%, managed = count");
}

TEST_CASE("third-party variables never stop ration run") {
  for (const Row &row : kRows) {
    for (const Problem &problem : reading_of(row.entries).problems) {
      INFO(problem.line);
      CHECK((!problem.fatal_for_cli || problem.key == "limit"));
    }
  }
}
