#include "logs/history/history.h"

#include "../log_text.h"
#include "catch.h"

using namespace ration;
using namespace ration::logs;
using namespace ration::test;

TEST_CASE("the peak is the most of live charged blocks, and who held them then") {
  const History history = history_of(
      log_of({alloc_record(1, 100), alloc_record(2, 50), free_record(1), alloc_record(3, 120), free_record(2),
              free_record(3), alloc_record(4, 1000, R"("src":"driver","charged":false)"), kEndRecord}));
  const History::Device &device = history.devices().at(0);
  CHECK(device.peak.bytes == 170);
  CHECK(device.peak.seq == 4);
  CHECK(device.peak.ts_ns == 4000);
  CHECK(device.reserved_peak.bytes == 170);
  CHECK(device.at_peak.at("cuMemAlloc_v2").bytes == 170);
  CHECK(device.at_peak.at("cuMemAlloc_v2").count == 2);
  CHECK(device.in_all.at("cuMemAlloc_v2").count == 4);
  CHECK(device.live_bytes == 0);
  CHECK(history.allocs() == 3);
  CHECK(history.frees() == 3);
  CHECK(history.has_ended());
}

TEST_CASE("slabs, and what the driver's pools hold, are reserved; blocks in slabs are not") {
  const History history =
      history_of(log_of({R"({"t":"slab_alloc","dev":0,"size":1000)", alloc_record(1, 100, R"("src":"pool")"),
                         R"({"t":"sample","dev":0,"pool_reserved":300)", R"({"t":"sample","dev":0,"pool_reserved":200)",
                         R"({"t":"slab_free","dev":0,"size":1000)"}));
  CHECK(history.devices().at(0).reserved_peak.bytes == 1300);
  CHECK(history.devices().at(0).reserved_bytes == 200);
  CHECK(history.devices().at(0).peak.bytes == 100);
}

TEST_CASE("blocks are put together as asked") {
  const std::string log = log_of({alloc_record(1, 100), alloc_record(2, 3000)});
  CHECK(history_of(log, By::call).devices().at(0).live.at("cuMemAlloc_v2").count == 2);
  CHECK(history_of(log, By::thread).devices().at(0).live.at("thread 7").count == 2);
  CHECK(history_of(log, By::size).devices().at(0).live.at("64B to 128B").count == 1);
  CHECK(history_of(log, By::size).devices().at(0).live.at("2KiB to 4KiB").bytes == 3000);
}

TEST_CASE("a block ends when its address is allocated again, where the record of its end was lost") {
  const History history = history_of(log_of({alloc_record(1, 100), alloc_record(1, 30)}));
  CHECK(history.devices()[0].live_bytes == 30);
  CHECK(history.devices()[0].peak.bytes == 100);
  CHECK(history.frees() == 1);
}

TEST_CASE("after records were lost the peak is that of the end, or what was sure before the loss") {
  const std::vector<std::string> records = {alloc_record(1, 100), R"({"t":"dropped","count":1)", alloc_record(2, 70)};
  CHECK(history_of(log_of(records)).devices()[0].peak.bytes == 100);
  CHECK(history_of(log_of(records)).devices()[0].reserved_peak.bytes == 100);
  std::vector<std::string> ended = records;
  ended.emplace_back(
      R"({"t":"end","peak":[110],"reserved_peak":[120],"live":[{"dev":0,"count":2,"bytes":90}],"ooms":2)");
  const History history = history_of(log_of(ended));
  CHECK(history.devices()[0].peak.bytes == 110);
  CHECK(history.devices()[0].reserved_peak.bytes == 120);
  CHECK(history.devices()[0].live_bytes == 90);
  CHECK(history.devices()[0].live_count() == 2);
  CHECK(history.unseen_refusals() == 2);
  CHECK(history.refusals() == 2);
  CHECK_FALSE(history.has_ended_cleanly());
}

TEST_CASE("an end whose lists are none tells nothing") {
  const std::string end = R"({"t":"end","failed_allocs":0,"failed_frees":0,)";
  for (const char *lists : {R"("peak":"x","live":"y","reserved_peak":3)", R"("peak":{"a":1},"live":[3])",
                            R"("peak":[5],"reserved_peak":{"k":2},"live":{"k":2})"}) {
    INFO(lists);
    CHECK(history_of(log_of({R"({"t":"dropped","count":1)", alloc_record(1, 100), end + lists}))
              .devices()[0]
              .peak.bytes == 100);
  }
}
