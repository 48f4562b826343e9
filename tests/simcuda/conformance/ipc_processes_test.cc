// Memory that one process exports and another one opens, on one machine.
#include <signal.h>

#include "tests/simcuda/conformance/peer.h"

namespace simcuda::conformance {
namespace {

TEST_CASE("each process reads what the other one writes into shared memory") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.importer("open " + handle) == "0 new");
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("write opened 9 100000") == "0");
  CHECK(two.exporter("read own 100000") == "0 9");
  CHECK(two.exporter("write own 11 50000") == "0");
  CHECK(two.importer("read opened 50000") == "0 11");
  CHECK(two.importer("read opened 100000") == "0 mixed");
  CHECK(two.importer("close opened") == "0");
}

TEST_CASE("an opened range has the size and the start of the exported allocation") {
  Two two;
  REQUIRE(two.importer("take 1536 1") == "0");
  REQUIRE(two.exporter("take 512 3") == "0");
  REQUIRE(two.exporter("take 100000 7") == "0");  // begins inside a page
  REQUIRE(two.importer("open " + two.exporter.share()) == "0 new");
  CHECK(two.importer("range opened") == "0 1 100000");
  CHECK(two.importer("read opened 100001") == "1");
  CHECK(two.importer("attributes opened") == "0 2 0 0 1");
  CHECK(two.exporter("attributes own") == "0 2 0 1 1");
}

TEST_CASE("a handle opened twice gives the same address, which stays valid until it is closed twice") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.importer("open " + handle) == "0 new");
  REQUIRE(two.importer("open " + handle) == "0 again");
  CHECK(two.importer("close opened") == "0");
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("close opened") == "0");
  CHECK(two.importer("read opened 100000") == "1");
  CHECK(two.importer("close opened") == "1");
}

TEST_CASE("a second context of a process cannot open what the first one has open") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.importer("open " + handle) == "0 new");
  REQUIRE(two.importer("context") == "0");
  CHECK(two.importer("open " + handle) == "201");
}

TEST_CASE("a destroyed context closes its imports") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.importer("open " + handle) == "0 new");
  REQUIRE(two.importer("destroy") == "0");
  REQUIRE(two.importer("context") == "0");
  CHECK(two.importer("close opened") == "1");
  REQUIRE(two.importer("open " + handle).front() == '0');
  CHECK(two.importer("read opened 100000") == "0 7");
}

TEST_CASE("imported memory costs the device nothing, and its importer can neither free nor export it") {
  Two two;
  REQUIRE(two.exporter("take 33554432 7") == "0");
  const std::string handle = two.exporter.share();
  const std::string before = two.importer("held");
  REQUIRE(two.importer("open " + handle) == "0 new");
  CHECK(two.importer("held") == before);
  CHECK(two.importer("free opened") == "1");
  CHECK(two.importer("share opened") == "1");
  CHECK(two.importer("read opened 33554432") == "0 7");
  CHECK(two.importer("close own") == "1");
}

TEST_CASE("import addresses are reused and show only the newly imported memory") {
  Two two;
  for (int turn = 0; turn < 50; ++turn) {
    REQUIRE(two.exporter("take 33554432 " + std::to_string(turn)) == "0");
    REQUIRE(two.importer("open " + two.exporter.share()).front() == '0');
    CHECK(two.importer("read opened 33554432") == "0 " + std::to_string(turn));
    REQUIRE(two.importer("close opened") == "0");
    REQUIRE(two.exporter("free own") == "0");
    REQUIRE(two.importer("take 16777216 200") == "0");
    CHECK(two.importer("read own 16777216") == "0 200");
    REQUIRE(two.importer("free own") == "0");
  }
}

TEST_CASE("a handle of freed memory opens nothing, even if other memory took its place") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.exporter("free own") == "0");
  CHECK(two.importer("open " + handle) == "1");
  REQUIRE(two.exporter("take 100000 8") == "0");
  CHECK(two.importer("open " + handle) == "1");
  REQUIRE(two.importer("open " + two.exporter.share()) == "0 new");
  CHECK(two.importer("read opened 100000") == "0 8");
}

TEST_CASE("a handle of an exited process opens nothing, and what was open stays readable") {
  Two two;
  REQUIRE(two.exporter("take 100000 7") == "0");
  const std::string handle = two.exporter.share();
  REQUIRE(two.importer("open " + handle) == "0 new");
  two.exporter.child().kill(SIGKILL);
  two.exporter.child().wait();
  CHECK(two.importer("read opened 100000") == "0 7");
  CHECK(two.importer("close opened") == "0");
  CHECK(two.importer("open " + handle) == "1");
}

TEST_CASE("a handle of another machine, or an invalid one, opens nothing") {
  Two two;
  const Folder elsewhere;
  Peer other(elsewhere.path());
  REQUIRE(two.exporter("take 100000 7") == "0");
  std::string handle = two.exporter.share();
  CHECK(other("open " + handle) == "1");
  const std::size_t id = 2 * 24;  // the first byte of the id
  handle[id] = handle[id] == 'f' ? '0' : 'f';
  CHECK(two.importer("open " + handle) == "1");
  CHECK(two.importer("open " + std::string(128, '0')) == "400");
  Peer alone("");
  REQUIRE(alone("take 100000 7") == "0");
  CHECK(two.importer("open " + alone.share()) == "1");
}

}  // namespace
}  // namespace simcuda::conformance
