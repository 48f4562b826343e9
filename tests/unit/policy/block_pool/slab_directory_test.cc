// Which slab an address lies in, also while slabs are inserted and end.
#include "policy/block_pool/slab_directory.h"

#include <thread>

#include "catch.h"
#include "unit/policy/yield_often.h"

using namespace ration;
using namespace ration::test;
using policy::Context;
using policy::ContextRef;
using policy::SlabDirectory;

namespace {

// Runs `waiting` on a thread of its own, which must not return before `release` has run.
template <class Waiting, class Release>
void waits_for(const Waiting &waiting, const Release &release) {
  std::atomic<bool> started{false};
  std::atomic<bool> returned{false};
  std::thread thread([&] {
    started = true;
    waiting();
    returned = true;
  });
  while (!started) {
    std::this_thread::yield();
  }
  yield_often();
  CHECK_FALSE(returned);
  release();
  thread.join();
}

const ContextRef kOne = std::make_shared<Context>();
const ContextRef kOtherContext = std::make_shared<Context>();

}  // namespace

TEST_CASE("an address belongs to the slab around it, from its first byte to its last") {
  SlabDirectory slabs;
  CHECK(slabs.owner_of(0x1000) == nullptr);
  slabs.insert(0x3000, 0x1000, kOtherContext);
  slabs.insert(0x1000, 0x1000, kOne);
  CHECK(slabs.owner_of(0xfff) == nullptr);
  CHECK(slabs.owner_of(0x1000) == kOne);
  CHECK(slabs.owner_of(0x1fff) == kOne);
  CHECK(slabs.owner_of(0x2000) == nullptr);
  CHECK(slabs.owner_of(0x3000) == kOtherContext);
  CHECK(slabs.owner_of(0x4000) == nullptr);
  slabs.insert(0x2000, 0x1000, kOne);  // between the two, touching both
  CHECK(slabs.owner_of(0x2000) == kOne);
  CHECK(slabs.owner_of(0x3000) == kOtherContext);
}

TEST_CASE("only a whole slab is erased, by its own address") {
  SlabDirectory slabs;
  slabs.insert(0x1000, 0x1000, kOne);
  slabs.erase(0x1200, *kOne);
  slabs.erase(0x2000, *kOne);
  slabs.erase(0x1000, *kOtherContext);  // the range belongs to another context by now
  CHECK(slabs.owner_of(0x1800) == kOne);
  slabs.erase(0x1000, *kOne);
  CHECK(slabs.owner_of(0x1800) == nullptr);
}

TEST_CASE("a range that the driver gives twice belongs to its latest owner") {
  SlabDirectory slabs;
  for (std::uint64_t at = 0x1000; at < 0x5000; at += 0x1000) {
    slabs.insert(at, 0x1000, kOne);
  }
  slabs.insert(0x1800, 0x2000, kOtherContext);
  CHECK(slabs.owner_of(0x1000) == nullptr);
  CHECK(slabs.owner_of(0x1800) == kOtherContext);
  CHECK(slabs.owner_of(0x37ff) == kOtherContext);
  CHECK(slabs.owner_of(0x3800) == nullptr);
  CHECK(slabs.owner_of(0x4000) == kOne);
}

TEST_CASE("a look-up of an address waits while another thread may be ending its slab") {
  SlabDirectory slabs;
  slabs.insert(0x1000, 0x1000, kOne);
  slabs.insert(0x2000, 0x1000, kOtherContext);
  slabs.begin_end(kOne);
  CHECK(slabs.owner_of(0x1000) == nullptr);  // to the thread that ends it, it is gone
  CHECK(slabs.owner_of(0x2000) == kOtherContext);
  std::thread([&] { CHECK(slabs.owner_of(0x2000) == kOtherContext); }).join();
  waits_for([&] { CHECK(slabs.owner_of(0x1000) == kOne); }, [&] { slabs.cancel_end(kOne); });
  slabs.begin_end(0x1000);
  waits_for([&] { CHECK(slabs.owner_of(0x1000) == nullptr); }, [&] { slabs.erase(0x1000, *kOne); });
}

TEST_CASE("one slab's end is begun and cancelled without the others") {
  SlabDirectory slabs;
  slabs.insert(0x1000, 0x1000, kOne);
  slabs.insert(0x2000, 0x1000, kOne);
  slabs.begin_end(0x1000);
  std::thread([&] { CHECK(slabs.owner_of(0x2000) == kOne); }).join();
  CHECK(slabs.owner_of(0x1000) == nullptr);
  slabs.cancel_end(0x1000);
  CHECK(slabs.owner_of(0x1000) == kOne);
  slabs.begin_end(0x1800);  // no slab's own address
  CHECK(slabs.owner_of(0x1800) == kOne);
}

TEST_CASE("a slab whose end another thread has begun is left to that thread") {
  SlabDirectory slabs;
  slabs.insert(0x1000, 0x1000, kOne);
  slabs.begin_end(0x1000);
  std::thread([&] {
    slabs.begin_end(kOne);
    slabs.cancel_end(kOne);
  }).join();
  CHECK(slabs.owner_of(0x1000) == nullptr);
}

TEST_CASE("a range is waited for and entered once no slab there is about to end") {
  SlabDirectory slabs;
  slabs.insert(0x1000, 0x1000, kOne);
  slabs.insert(0x4000, 0x1000, kOtherContext);
  slabs.begin_end(kOne);
  slabs.wait_for_ends(0x1000, 0x1000);  // by the thread that ends it
  std::thread([&] { slabs.wait_for_ends(0x2000, 0x3000); }).join();
  waits_for([&] { slabs.wait_for_ends(0x0800, 0x1000); }, [&] { slabs.erase(0x1000, *kOne); });
  slabs.begin_end(kOtherContext);
  waits_for([&] { slabs.insert(0x4800, 0x1000, kOne); }, [&] { slabs.erase(0x4000, *kOtherContext); });
  CHECK(slabs.owner_of(0x4800) == kOne);
}
