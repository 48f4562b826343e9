#include "cli/launch/preload_order.h"

#include "catch.h"

using ration::cli::preload_order;
using ration::cli::prepend_folder;

TEST_CASE("the library is listed once and first, or after libasan where that must be first") {
  const std::string ours = "/opt/ration/lib/libration.so";
  struct Row {
    const char *present;
    std::vector<std::string> needed;
    std::string expected;
  };
  const Row rows[] = {
      {"", {}, ours},
      {"a.so", {}, ours + ":a.so"},
      {"a.so b.so:c.so", {}, ours + ":a.so:b.so:c.so"},
      {" a.so :: b.so ", {}, ours + ":a.so:b.so"},
      {"a.so:/opt/ration/lib/libration.so", {}, ours + ":a.so"},
      {"/old/libration.so:a.so", {}, ours + ":a.so"},
      {"", {"libm.so.6", "libasan.so.8"}, "libasan.so.8:" + ours},
      {"", {"libclang_rt.asan-x86_64.so"}, "libclang_rt.asan-x86_64.so:" + ours},
      {"a.so", {"libasan.so.8"}, "libasan.so.8:" + ours + ":a.so"},
      {"/usr/lib/libasan.so.8", {}, "/usr/lib/libasan.so.8:" + ours},
      {"/usr/lib/libasan.so.8:a.so", {"libasan.so.8"}, "/usr/lib/libasan.so.8:" + ours + ":a.so"},
      {"a.so:/usr/lib/libasan.so.6", {"libasan.so.6"}, "/usr/lib/libasan.so.6:" + ours + ":a.so"},
      {"a.so:libasan.so.8", {}, ours + ":a.so:libasan.so.8"},
      {"libration.so libasan.so.8", {}, "libasan.so.8:" + ours},
      {"", {"libubsan.so.1", "libtsan.so.2"}, ours},
      {"/x/libasan.so.8/real.so", {}, ours + ":/x/libasan.so.8/real.so"},
  };
  for (const Row &row : rows) {
    INFO(row.present);
    CHECK(preload_order(row.present, ours, row.needed) == row.expected);
  }
}

TEST_CASE("a folder is prepended once and without an empty item") {
  CHECK(prepend_folder("", "/sim") == "/sim");
  CHECK(prepend_folder("/a:/b", "/sim") == "/sim:/a:/b");
  CHECK(prepend_folder("/sim:/a", "/sim") == "/sim:/a");
  CHECK(prepend_folder("/sim", "/sim") == "/sim");
  CHECK(prepend_folder("/simple", "/sim") == "/sim:/simple");
  CHECK(prepend_folder("/a::/b", "/sim") == "/sim:/a::/b");  // an existing empty item stays
}
