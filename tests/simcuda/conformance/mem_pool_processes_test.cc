// Pools that one process exports and another one imports, on one machine.
#include <signal.h>

#include "tests/simcuda/conformance/peer.h"

namespace simcuda::conformance {
namespace {

// Strips the result code.
std::string payload(const std::string &answer) {
  REQUIRE(answer.substr(0, 2) == "0 ");
  return answer.substr(2);
}

// A block of 100000 bytes of value 7 in a pool that both processes have.
struct Shared : Two {
  Shared() {
    REQUIRE(exporter("pool 1") == "0");
    REQUIRE(importer("pool_import " + payload(exporter("pool_export"))) == "0");
    REQUIRE(exporter("pool_take 100000 7") == "0");
  }
  std::string share() { return payload(exporter("pool_share")); }
};

TEST_CASE("each process reads what the other one writes into a block of an exported pool") {
  Shared two;
  REQUIRE(two.importer("pool_open " + two.share()) == "0");
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("write opened 9 100000") == "0");
  CHECK(two.exporter("read own 100000") == "0 9");
  CHECK(two.importer("range opened") == "0 1 100000");
}

TEST_CASE("an import costs nothing, and freeing it affects only the importer") {
  Shared two;
  const std::string held = two.importer("held"), block = two.share();
  for (const std::string way : {"free opened", "free_in_order opened"}) {
    REQUIRE(two.importer("pool_open " + block) == "0");
    CHECK(two.importer("held") == held);
    CHECK(two.importer(way) == "0");
    CHECK(two.importer("read opened 1") == "1");
    CHECK(two.importer(way) == "1");
    CHECK(two.importer("held") == held);
    CHECK(two.exporter("read own 100000") == "0 7");
  }
}

TEST_CASE("an imported pool cannot allocate or be current, and its imported blocks outlive it") {
  Shared two;
  CHECK(two.importer("pool_take 16 1") == "1");
  CHECK(two.importer("pool_current") == "1");
  CHECK(two.importer("pool_export") == "1");
  REQUIRE(two.importer("pool_open " + two.share()) == "0");
  CHECK(two.importer("pool_destroy") == "0");
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("free opened") == "0");
}

TEST_CASE("a pool created without handle types cannot be exported, nor can its blocks") {
  Two two;
  REQUIRE(two.exporter("pool 0") == "0");
  REQUIRE(two.exporter("pool_take 16 1") == "0");
  CHECK(two.exporter("pool_export") == "1");
  CHECK(two.exporter("pool_share") == "1");
  REQUIRE(two.exporter("take 16 1") == "0");
  CHECK(two.exporter("pool_share") == "1");  // of no pool
}

TEST_CASE("a block can be imported only from its own pool, and only while it lives") {
  Shared two;
  const std::string block = two.share();
  REQUIRE(two.exporter("free_in_order own") == "0");
  CHECK(two.importer("pool_open " + block) == "1");
  REQUIRE(two.exporter("pool_take 100000 8") == "0");  // at the same address
  CHECK(two.importer("pool_open " + block) == "1");
  const std::string other = two.share();
  REQUIRE(two.exporter("pool 1") == "0");
  REQUIRE(two.importer("pool_import " + payload(two.exporter("pool_export"))) == "0");
  CHECK(two.importer("pool_open " + other) == "1");
  CHECK(two.importer("pool_open " + std::string(128, '0')) == "1");
  CHECK(two.importer("pool_import /dev/null") == "1");
}

TEST_CASE("nothing can be imported from an exited exporter, and earlier imports stay readable") {
  Shared two;
  const std::string block = two.share();
  REQUIRE(two.importer("pool_open " + block) == "0");
  two.exporter.child().kill(SIGKILL);
  two.exporter.child().wait();
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("pool_open " + block) == "1");
  CHECK(two.importer("free opened") == "0");
}

TEST_CASE("a process alone on its machine cannot create a shareable pool") {
  Peer alone("");
  CHECK(alone("pool 1") == "801");
}

}  // namespace
}  // namespace simcuda::conformance
