#include "logs/history/limit_need.h"

#include "../log_text.h"
#include "catch.h"
#include "config/values/size.h"

using namespace ration;
using namespace ration::logs;
using namespace ration::test;

namespace {

using Sure = History::Need::Sure;

// Of a device of that mode and backing, with a limit of 48 MiB.
std::string log_in(const std::string &mode, const std::string &backing, const std::vector<std::string> &records) {
  std::string log = log_of(records);
  log.insert(log.find(",\"limit_asked\""), ",\"mode\":\"" + mode + "\",\"backing\":\"" + backing + "\"");
  return log;
}

std::string block_at(const std::string &address, std::uint64_t bytes, const std::string &more) {
  return R"({"t":"alloc","dev":0,"api":"cuMemAlloc_v2","kind":"device","addr":")" + address + R"(","size":)" +
         std::to_string(bytes) + R"(,"req":)" + std::to_string(bytes) + "," + more;
}

std::string denial(const std::string &api, std::uint64_t bytes, const std::string &more = R"("reason":"limit")") {
  return R"({"t":"oom","dev":0,"api":")" + api + R"(","req":)" + std::to_string(bytes) +
         R"(,"used":8388608,"limit":50331648,"device_free":1000000000,"largest_free":1,)" + more;
}

History::Refusal refusal_in(const std::string &log) {
  const History history = history_of(log);
  REQUIRE(history.devices()[0].refusals.size() == 1);
  return history.devices()[0].refusals[0];
}

const std::string kGranule =
    R"({"t":"slab_alloc","dev":0,"slab":2,"addr":"0x4","size":2097152,"backend":"cuMemCreate","why":"check")";
const std::string kInPool = R"("src":"pool","slab":1)";
const std::string kOwn = R"("src":"driver")";

}  // namespace

TEST_CASE("each reason of a refusal has its remedy") {
  History::Refusal refusal;
  refusal.limit = 120 * config::kMiB;
  refusal.need = {128 * config::kMiB, Sure::enough};
  refusal.backing = "slab";
  for (const auto &[reason, words] : std::vector<std::pair<std::string, std::string>>{
           {"limit", "a limit of 128MiB (134217728 bytes) would have served it; it was 120MiB"},
           {"group", "a larger --group-limit"},
           {"device", "this program, other processes"},
           {"pool_holds", "RATION_BACKING=vmm"},
           {"fault", "on purpose"}}) {
    refusal.reason = reason;
    CHECK(remedy(refusal).find(words) != std::string::npos);
  }
  refusal.reason = "device";
  refusal.device_free = config::kMiB;
  CHECK(remedy(refusal).find("the driver refused it, although the device had 1MiB") == 0);
  refusal.reason = "group";
  refusal.by.group = "container:4026531836-01234567";
  CHECK(remedy(refusal).find("a larger --container-limit would help") != std::string::npos);
  refusal.by.limit = 10;
  refusal.largest.bytes = 11;
  CHECK(remedy(refusal).find("it alone is more than the container's limit") == 0);
}

TEST_CASE("free memory that a pool holds has a remedy that its mode and backing have") {
  History::Refusal refusal;
  refusal.reason = "pool_holds";
  refusal.api = "cuMemAlloc_v2";
  refusal.limit = 120 * config::kMiB;
  refusal.need = {128 * config::kMiB, Sure::enough};
  refusal.mode = "pool";
  refusal.backing = "vmm";
  const std::string limit =
      ": a limit of 128MiB (134217728 bytes) would have served it; it was 120MiB (125829120 bytes)";
  CHECK(remedy(refusal) == "free memory lay in pieces that also hold blocks, or was less than one piece" + limit);
  refusal.api = "cuMemAllocAsync";
  CHECK(remedy(refusal) ==
        "free memory lay in pieces that also hold blocks, and the driver's pools take 32MiB at once" + limit);
  refusal.mode = "async";
  refusal.backing = "";
  refusal.api = "cuMemAlloc_v2";
  CHECK(remedy(refusal) ==
        "free memory lay in the driver's pools, in parts too small, and they take 32MiB at once" + limit);
  refusal.api = "cuIpcGetMemHandle";
  CHECK(remedy(refusal).find("RATION_IPC=direct") != std::string::npos);
}

TEST_CASE("a limit that is known to suffice, one that does at least, and one that no device has are told apart") {
  History::Refusal refusal;
  refusal.reason = "limit";
  refusal.limit = 48 * config::kMiB;
  refusal.total = 1024 * config::kMiB;
  refusal.need = {72 * config::kMiB, Sure::least};
  CHECK(remedy(refusal) == "it needs a limit of at least 72MiB (75497472 bytes); it was 48MiB (50331648 bytes)");
  --refusal.need.bytes;  // less may serve than the next MiB
  CHECK(remedy(refusal).find("at least 72.0MiB (75497471 bytes)") != std::string::npos);
  ++refusal.need.bytes;
  refusal.need.sure = Sure::maybe;
  CHECK(remedy(refusal) == "a limit of 72MiB (75497472 bytes) may serve it; it was 48MiB (50331648 bytes)");
  for (const std::uint64_t bytes : {std::uint64_t{0}, 47 * config::kMiB + 1, 48 * config::kMiB}) {
    refusal.need = {bytes, Sure::enough};
    CHECK(remedy(refusal).find("it needs a limit above 48MiB (50331648 bytes), the one in force") == 0);
  }
  refusal.need = {1024 * config::kMiB + 1, Sure::enough};
  CHECK(remedy(refusal).find(
            "1.00GiB (1074790400 bytes) would have served it, but the device has 1.00GiB (1073741824 bytes)") !=
        std::string::npos);
}

TEST_CASE("a stream-ordered request needs whole steps of the driver's pool") {
  for (const std::string mode : {"direct", "async"}) {
    const auto refusal = refusal_in(log_in(mode, "", {denial("cuMemAllocAsync", 40 * config::kMiB)}));
    CHECK(refusal.need.bytes == 64 * config::kMiB);
    CHECK(refusal.need.sure == Sure::enough);
  }
  const auto beside = refusal_in(log_in(
      "direct", "", {block_at("0x1", 8 * config::kMiB, kOwn), denial("cuMemAllocFromPoolAsync", 40 * config::kMiB)}));
  CHECK(beside.need.bytes == 72 * config::kMiB);
  CHECK(beside.need.sure == Sure::enough);
  const auto in_pool = refusal_in(
      log_in("pool", "vmm",
             {kGranule, block_at("0x200000", 3 * config::kMiB, kInPool),
              block_at("0x500000", 5 * config::kMiB, kInPool), denial("cuMemAllocAsync", 40 * config::kMiB)}));
  CHECK(in_pool.need.bytes == 72 * config::kMiB);
  CHECK(in_pool.need.sure == Sure::maybe);
}

TEST_CASE("near its limit a pool of the driver's took less than under a larger one") {
  const std::string pool = R"({"t":"sample","dev":0,"pool_reserved":20971520)";
  const auto refusal = refusal_in(log_in("direct", "", {pool, denial("cuMemAlloc_v2", config::kMiB)}));
  CHECK(refusal.need.bytes == 33 * config::kMiB);
  const auto of_driver =
      refusal_in(log_in("async", "", {block_at("0x1", config::kMiB, kOwn), denial("cuMemAlloc_v2", config::kMiB)}));
  CHECK(of_driver.need.bytes == 64 * config::kMiB);
  CHECK(of_driver.need.sure == Sure::maybe);
}

TEST_CASE("a pool with granules needs those that hold a part of a block, and whole ones for a request") {
  const auto need = [](const std::vector<std::string> &blocks, const std::string &more = R"("reason":"limit")") {
    std::vector<std::string> records = {kGranule};
    records.insert(records.end(), blocks.begin(), blocks.end());
    records.push_back(denial("cuMemAlloc_v2", 5 * config::kMiB, more));
    return refusal_in(log_in("pool", "vmm", records)).need;
  };
  CHECK(need({}).bytes == 6 * config::kMiB);
  CHECK(need({}).sure == Sure::enough);
  // The second and the third granule of a block of 3 MiB, and the third one again.
  const std::string first = block_at("0x200000", 3 * config::kMiB, kInPool);
  CHECK(need({first}).bytes == 10 * config::kMiB);
  CHECK(need({first, block_at("0x500000", 512, kInPool)}).bytes == 10 * config::kMiB);
  CHECK(need({first, block_at("0x600000", 64 * config::kMiB, kInPool)}).bytes == 74 * config::kMiB);
  const std::vector<std::string> ended = {first, block_at("0x500000", 512, kInPool),
                                          R"({"t":"free","dev":0,"kind":"device","addr":"0x200000")"};
  CHECK(need(ended).bytes == 8 * config::kMiB);
  CHECK(need({block_at("0x1", 3 * config::kMiB, kOwn)}).bytes == 9 * config::kMiB);
  CHECK(need({}, R"("reason":"limit","quarantined":1)").bytes == 8 * config::kMiB);
  CHECK(need({}, R"("reason":"limit","quarantined":1)").sure == Sure::maybe);
}

TEST_CASE("where blocks will lie in slabs, or records are missing, no limit is known to suffice") {
  const std::vector<std::string> records = {block_at("0x1", 8 * config::kMiB, kInPool),
                                            denial("cuMemAllocAsync", 5 * config::kMiB)};
  for (const std::string &log : {log_in("pool", "slab", records), log_of(records)}) {
    CHECK(refusal_in(log).need.bytes == 13 * config::kMiB);
    CHECK(refusal_in(log).need.sure == Sure::least);
  }
  const auto lossy =
      refusal_in(log_in("direct", "", {R"({"t":"dropped","count":1)", denial("cuMemAlloc_v2", 5 * config::kMiB)}));
  CHECK(lossy.need.bytes == 0);
  CHECK(remedy(lossy).find("how much above is not known") != std::string::npos);
  CHECK(refusal_in(log_in("direct", "", {denial("cuArrayCreate_v2", config::kMiB)})).need.sure == Sure::maybe);
}

TEST_CASE("what was refused before would be held, too, under a larger limit") {
  const auto refusal = refusal_in(
      log_in("direct", "", {denial("cuMemAllocAsync", config::kMiB), denial("cuMemAllocAsync", 2 * config::kMiB)}));
  CHECK(refusal.need.bytes == 2 * config::kMiB);
  CHECK(refusal.need.sure == Sure::least);
}

TEST_CASE("what a request lacked is what its record says, and unknown if it says nothing") {
  const std::string own = block_at("0x1", 46 * config::kMiB, kOwn);
  const auto lacking = [&](const std::string &more) {
    return refusal_in(log_in("direct", "", {own, denial("cuMemAlloc_v2", 5 * config::kMiB, more)})).lacking;
  };
  CHECK(lacking(R"("reason":"limit","lacking":12345)") == 12345);
  CHECK(lacking(R"("reason":"limit")") == 0);
}

TEST_CASE("no limit is known to serve a request for which the device may have too little") {
  std::string log = log_in("direct", "", {denial("cuMemAlloc_v2", 49 * config::kMiB)});
  CHECK(refusal_in(log).need.sure == Sure::enough);
  log.replace(log.find("1000000000,\"largest"), 10, "null");
  CHECK(refusal_in(log).need.sure == Sure::maybe);
}
