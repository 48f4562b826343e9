#include "cli/find/fault_table.h"

#include "catch.h"
#include "cli/base/text_table.h"

using namespace ration::cli;

namespace {

RunEnd ended(int status, bool timed_out = false) {
  RunEnd end;
  end.status = status;
  end.timed_out = timed_out;
  return end;
}

}  // namespace

TEST_CASE("a run is classified by how it ended and what it printed") {
  CHECK(survival_of(ended(0), true) == Survival::kOk);
  CHECK(survival_of(ended(0), false) == Survival::kDiffers);
  CHECK(survival_of(ended(1), false) == Survival::kError);
  CHECK(survival_of(ended(128), true) == Survival::kError);
  CHECK(survival_of(ended(128 + 11), true) == Survival::kCrash);
  CHECK(survival_of(ended(128 + 64), true) == Survival::kCrash);
  CHECK(survival_of(ended(255), true) == Survival::kError);  // exit(-1)
  CHECK(survival_of(ended(128 + 15, true), true) == Survival::kHang);
}

TEST_CASE("the last line counts the outcomes and says where the search stopped") {
  FaultSearch search;
  const auto last = [&search] { return fault_lines(search, kUnlimitedWidth).back(); };
  CHECK(last() == "no device memory was requested, so nothing could be refused");
  search.runs.push_back({1, {"cuMemAlloc_v2", 512, 0}, ended(0), Survival::kOk});
  CHECK(search.is_survived());
  CHECK(last() == "1 allocation refused, each in a run of its own: 1 ok");
  search.runs.push_back({2, {"cuMemAlloc_v2", 512, 0}, ended(0, true), Survival::kHang});
  search.runs.push_back({3, {"cuMemAlloc_v2", 512, 0}, ended(0, true), Survival::kHang});
  search.is_cut = true;
  CHECK_FALSE(search.is_survived());
  CHECK(last() ==
        "3 allocations refused, each in a run of its own: 1 ok, 2 hangs; stopped there (--first), so later allocations "
        "are not known");
}
