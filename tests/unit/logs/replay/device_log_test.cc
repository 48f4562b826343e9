#include "logs/replay/device_log.h"

#include "../log_text.h"
#include "catch.h"
#include "logs/history/history.h"

using namespace ration::logs;
using namespace ration::test;

TEST_CASE("a block whose free was lost ends where another begins, in a replay as in a report") {
  DeviceLog replayed(DeviceLog::Counts::reserved);
  History reported(History::By::call);
  std::istringstream text(log_of({alloc_record(1, 1000), alloc_record(1, 3000), alloc_record(2, 500)}));
  LogReader reader(text);
  for (Record record; reader.next(record);) {
    replayed.add(record);
    reported.add(record);
  }
  REQUIRE(replayed.devices().size() == 1);
  CHECK(replayed.devices()[0].peak_live_blocks == 2);
  CHECK(replayed.devices()[0].trace.peak_bytes == 3498);  // as requested
  CHECK(reported.devices()[0].live_bytes == 3500);
}
