#include "ledger/device_key.h"

#include <string>

#include "catch.h"
#include "ledger/shared_layout.h"

using namespace ration::ledger;
using shared::Tag;

TEST_CASE("a device's UUID keeps the driver's spelling through the ledger") {
  const std::string uuid = "GPU-01234567-89ab-cdef-fedc-ba9876543210";
  CHECK(device_text(device_key(uuid, 3)) == uuid);
  CHECK(device_text(device_key("GPU-01234567-89AB-CDEF-FEDC-BA9876543210", 0)) == uuid);
  CHECK(device_text(device_key("MIG-01234567-89ab-cdef-fedc-ba9876543210", 0)) == uuid);
}

TEST_CASE("a device without a UUID is known by its ordinal") {
  for (const char *none : {"", "GPU-", "GPU-00000000-0000-0000-0000-000000000000", "GPU-0123", "no uuid at all"}) {
    INFO(none);
    CHECK(device_text(device_key(none, 0)) == "ordinal 0");
    CHECK(device_text(device_key(none, 7)) == "ordinal 7");
  }
}

TEST_CASE("devices whose UUIDs differ in one digit are distinct") {
  const std::string uuid = "GPU-01234567-89ab-cdef-fedc-ba9876543210";
  const WideValue key = device_key(uuid, 0);
  int differing = 0;
  for (std::size_t i = 4; i < uuid.size(); ++i) {
    if (uuid[i] != '-') {
      std::string other = uuid;
      other[i] = other[i] == 'a' ? 'b' : 'a';
      const WideValue other_key = device_key(other, 0);
      CHECK((other_key.low != key.low || other_key.high != key.high));
      ++differing;
    }
  }
  CHECK(differing == 32);
}

TEST_CASE("a tag names its slot and operation, and no tag differs from slot 0's first") {
  for (const std::uint32_t slot : {0U, 1U, shared::kSlots - 1}) {
    for (const std::uint64_t operation : {std::uint64_t{2}, std::uint64_t{3}, (std::uint64_t{1} << 48) - 1}) {
      const Tag tag = Tag::of(Tag{slot, operation}.packed());
      CHECK(tag.slot == slot);
      CHECK(tag.operation == operation);
    }
  }
  CHECK(Tag::of(0).slot >= shared::kSlots);
  CHECK(Tag::of(0).operation == 0);
  CHECK(Tag{0, 0}.packed() != 0);
}

TEST_CASE("sixteen bytes change together or not at all") {
  WideWord word;
  CHECK(word.exchange({0, 0}, {1, 2}));
  CHECK_FALSE(word.exchange({1, 0}, {3, 4}));
  CHECK_FALSE(word.exchange({0, 2}, {3, 4}));
  CHECK(word.load().low == 1);
  CHECK(word.load().high == 2);
  CHECK(word.exchange({1, 2}, {UINT64_MAX, UINT64_MAX}));
  CHECK(word.load().low == UINT64_MAX);
  CHECK(word.load().high == UINT64_MAX);
}
