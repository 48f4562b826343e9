// The pool's part of a log: slabs, waits, trims, and the reserved bytes of all of them.
#include "catch.h"
#include "unit/events/journal_fixture.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("every record of the pool has the expected keys and values") {
  const std::string close = R"(,"ts":8,"seq":9})";
  CHECK(written(a_pool_alloc(0x10000000200, 1024, 3)) ==
        R"({"t":"alloc","tid":7,"dev":0,"ctx":1,"stream":0,"api":"cuMemAlloc_v2","via":"driver","kind":"device",)"
        R"("addr":"0x10000000200","size":1024,"req":1024,"src":"pool","slab":3,"dur":5)" +
            close);
  CHECK(written(a_pool_free(0x10000000200, 1024)) ==
        R"({"t":"free","tid":7,"dev":0,"ctx":1,"stream":0,"api":"cuMemFree_v2","kind":"device",)"
        R"("addr":"0x10000000200","size":1024,)"
        R"("src":"pool")" +
            close);
  events::SlabAlloc slab = a_slab_alloc(2, 2097152, 1);
  slab.why = "preallocate";
  CHECK(written(slab) == R"({"t":"slab_alloc","tid":7,"dev":1,"ctx":1,"slab":2,"addr":"0x20000000000","size":2097152,)"
                         R"("backend":"cuMemAlloc_v2","why":"preallocate","dur":7)" +
                             close);
  CHECK(written(a_slab_free(2, 2097152, 1)) ==
        R"({"t":"slab_free","tid":7,"dev":1,"ctx":1,"slab":2,"addr":"0x20000000000","size":2097152,)"
        R"("backend":"cuMemAlloc_v2","api":"cuCtxDestroy_v2")" +
            close);
  CHECK(written(events::Wait{1, "cuMemFree_v2", "synchronize", 3, 1536, 900, 700}) ==
        R"({"t":"wait","tid":7,"dev":1,"api":"cuMemFree_v2","how":"synchronize","blocks":3,"bytes":1536,)"
        R"("result":700,"dur":900)" +
            close);
  CHECK(written(events::Trim{1, "cuArrayCreate_v2", 2, 4194304}) ==
        R"({"t":"trim","tid":7,"dev":1,"api":"cuArrayCreate_v2","slabs":2,"granules":0,"bytes":4194304)" + close);
}

TEST_CASE("an oom record reports what is reserved, what could not be cleaned and why") {
  events::Oom event = an_oom(events::Reason::pool_holds);
  event.reserved = 40;
  event.quarantined = 50;
  const json quiet = json::parse(written(event));
  CHECK(quiet.at("reason") == "pool_holds");
  CHECK(quiet.at("reserved") == 40);
  CHECK(quiet.at("quarantined") == 50);
  CHECK(quiet.at("capturing") == false);
  event.capturing = true;
  CHECK(json::parse(written(event)).at("capturing") == true);
}

TEST_CASE("reserved bytes are slabs and the driver's own blocks, whatever the slabs contain") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  const events::DeviceTally &tally = journal.tally().devices[0];
  journal.record(a_slab_alloc(1, 1000));
  journal.record(a_pool_alloc(0x1000, 512, 1));
  journal.record(an_alloc(0x2000, 30));
  CHECK(tally.reserved_bytes == 1030);
  CHECK(tally.live_bytes == 542);
  journal.record(a_pool_free(0x1000, 512));
  CHECK(tally.reserved_bytes == 1030);
  journal.record(a_slab_free(1, 1000));
  journal.record(events::Trim{0, "cuMemAlloc_v2", 1, 1000});
  CHECK(tally.reserved_bytes == 30);
  journal.record(a_free(0x2000, 30));
  CHECK(tally.reserved_bytes == 0);
  journal.record(a_wait(1));
  journal.end(nullptr);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(is_consecutive(lines));
  CHECK(lines.back().at("reserved_peak") == json{1030, 0});
  CHECK(lines.back().at("peak") == json{542, 0});
  CHECK(lines.back().at("waits") == 1);
  CHECK(of_type(lines, "trim").size() == 1);
}

TEST_CASE("an alloc record says that its block is stitched, and only then") {
  CHECK(json::parse(written(a_stitched_alloc(0x1000, 512, 1))).at("stitched") == true);
  CHECK_FALSE(json::parse(written(a_pool_alloc(0x1000, 512, 1))).contains("stitched"));
}

TEST_CASE("the end counts the most granules held at once, and all stitched blocks, by device") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  const events::DeviceTally &tally = journal.tally().devices[1];
  journal.record(a_slab_alloc(1, 1000, 1));
  for (const std::uint64_t number : {2U, 3U, 4U}) {
    journal.record(a_granule(number, 2000, 1));
  }
  journal.record(a_granule_end(3, 2000, 1));
  journal.record(a_stitched_alloc(0x1000, 512, 1, 1));
  journal.record(a_pool_free(0x1000, 512, 1));
  journal.record(a_stitched_alloc(0x1000, 512, 1, 1));
  journal.record(a_granule(5, 2000, 1));
  journal.record(a_granule_end(5, 2000, 1));
  CHECK(tally.granules == 2);
  journal.end(nullptr);
  const json end = log_lines(folder / "log").back();
  CHECK(end.at("granules_peak") == json{0, 3});
  CHECK(end.at("stitched") == json{0, 2});
}

TEST_CASE("the end says by kind what the driver held for itself when it was most, by device") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  journal.count_overhead(1, {100, 0, 0, 0});
  journal.count_overhead(1, {100, 20, 0, 3});
  journal.count_overhead(1, {100, 0, 7, 0});
  journal.count_unmeasured(1);
  journal.end(0);
  const json told = log_lines(folder / "log").back().at("overhead");
  CHECK(told.at(0) ==
        json{{"dev", 0}, {"bytes", 0}, {"context", 0}, {"module", 0}, {"limit", 0}, {"other", 0}, {"unmeasured", 0}});
  CHECK(
      told.at(1) ==
      json{
          {"dev", 1}, {"bytes", 123}, {"context", 100}, {"module", 20}, {"limit", 0}, {"other", 3}, {"unmeasured", 1}});
}

TEST_CASE("a refused handle is an oom record, but not a denied allocation") {
  const ScratchFolder folder;
  std::string problem;
  events::Journal journal(logging_to(folder / "log"), problem);
  journal.describe(two_devices(), 0);
  journal.record(a_refused_share(1));
  journal.end(nullptr);
  const std::vector<json> lines = log_lines(folder / "log");
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].at("t") == "oom");
  CHECK(lines[1].at("api") == "cuIpcGetMemHandle");
  CHECK(lines[1].at("reason") == "pool_holds");
  CHECK(lines[2].at("ooms") == 0);
  CHECK(lines[2].at("refused_ipc") == 1);
}

TEST_CASE("blocks of the pool without a record count like those with one") {
  std::string problem;
  events::Journal journal(logging_to(""), problem);
  journal.describe(two_devices(), 0);
  journal.count_pool_alloc(1, 1024);
  journal.count_pool_alloc(1, 512);
  journal.count_pool_free(1, 1024);
  journal.record(a_pool_alloc(0x10000000200, 256, 1));
  const events::DeviceTally &tally = journal.tally().devices[1];
  CHECK(tally.allocs == 2);
  CHECK(tally.frees == 1);
  CHECK(tally.live_bytes == 512);
  CHECK(tally.peak_bytes == 1536);
  CHECK(tally.reserved_peak_bytes == 0);
  CHECK(journal.tally().devices[0].live_bytes == 256);
}
