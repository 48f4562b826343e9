// What keeps physical memory alive: handles, mappings, and the calls that are about to make one.
#include "policy/physical/physical_memory.h"

#include "catch.h"

using namespace ration;
using policy::PhysicalMemory;

namespace {

constexpr std::uint64_t kGranule = 2U << 20U;
constexpr CUdeviceptr kAddresses = 0x7000'0000'0000;

struct Memory {
  void create(CUmemGenericAllocationHandle handle) {
    PhysicalMemory::Piece piece;
    piece.handle = handle;
    piece.bytes = kGranule;
    physical.created(piece);
  }
  // True: the piece is gone with it.
  bool release(CUmemGenericAllocationHandle handle) {
    const PhysicalMemory::PieceRef piece = physical.begin_release(handle);
    REQUIRE(piece != nullptr);
    return physical.drop(piece);
  }
  void map(CUdeviceptr address, CUmemGenericAllocationHandle handle, std::uint64_t bytes = kGranule) {
    const PhysicalMemory::PieceRef piece = physical.hold(handle);
    REQUIRE(piece != nullptr);
    physical.mapped(address, bytes, piece);
  }
  // How many pieces are gone with it.
  int unmap(CUdeviceptr address, std::uint64_t bytes = kGranule) {
    int gone = 0;
    for (const PhysicalMemory::Mapping &mapping : physical.begin_unmap(address, bytes)) {
      gone += physical.drop(mapping.piece) ? 1 : 0;
    }
    return gone;
  }
  bool knows(CUmemGenericAllocationHandle handle) {
    const PhysicalMemory::PieceRef piece = physical.hold(handle);
    if (piece == nullptr) {
      return false;
    }
    CHECK_FALSE(physical.drop(piece));
    return true;
  }
  PhysicalMemory physical;
};

}  // namespace

TEST_CASE("memory that was never mapped is gone with its only reference, and released once") {
  Memory memory;
  memory.create(5);
  CHECK(memory.release(5));
  CHECK(memory.physical.begin_release(5) == nullptr);
  CHECK_FALSE(memory.knows(5));
}

TEST_CASE("a release that the driver refused changes nothing") {
  Memory memory;
  memory.create(5);
  memory.physical.retained(5, memory.physical.begin_release(5));
  CHECK(memory.knows(5));
  CHECK(memory.release(5));
}

TEST_CASE("while the driver is releasing the last reference its handle is nobody's, and may be another's") {
  Memory memory;
  memory.create(5);
  const PhysicalMemory::PieceRef first = memory.physical.begin_release(5);
  CHECK_FALSE(memory.knows(5));
  memory.create(5);  // another thread's cuMemCreate came before we did
  CHECK(memory.physical.drop(first));
  CHECK(memory.release(5));
}

TEST_CASE("memory that is mapped outlives its last handle") {
  Memory memory;
  memory.create(5);
  memory.map(kAddresses, 5);
  CHECK_FALSE(memory.release(5));
  CHECK_FALSE(memory.knows(5));
  CHECK(memory.unmap(kAddresses) == 1);
  CHECK(memory.unmap(kAddresses) == 0);
}

TEST_CASE("memory that is mapped twice goes with the second mapping") {
  Memory memory;
  memory.create(5);
  memory.map(kAddresses, 5);
  memory.map(kAddresses + 8 * kGranule, 5);
  CHECK_FALSE(memory.release(5));
  CHECK(memory.unmap(kAddresses + 8 * kGranule) == 0);
  CHECK(memory.unmap(kAddresses) == 1);
}

TEST_CASE("a reference more, under whatever handle, keeps memory alive") {
  Memory memory;
  memory.create(5);
  memory.map(kAddresses, 5);
  memory.physical.retained(5, memory.physical.hold_at(kAddresses + kGranule - 1));
  memory.physical.retained(6, memory.physical.hold_at(kAddresses));
  CHECK_FALSE(memory.release(5));
  CHECK(memory.knows(5));
  CHECK_FALSE(memory.release(5));
  CHECK_FALSE(memory.knows(5));
  CHECK(memory.unmap(kAddresses) == 0);
  CHECK(memory.release(6));
}

TEST_CASE("a hold for a call that the driver refused leaves no trace") {
  Memory memory;
  memory.create(5);
  const PhysicalMemory::PieceRef held = memory.physical.hold(5);
  CHECK_FALSE(memory.release(5));
  CHECK(memory.physical.drop(held));  // released meanwhile: it goes now
}

TEST_CASE("an address is held by what is mapped there, to the byte") {
  Memory memory;
  memory.create(5);
  CHECK(memory.physical.hold_at(kAddresses) == nullptr);
  memory.map(kAddresses, 5);
  CHECK(memory.physical.hold_at(kAddresses - 1) == nullptr);
  CHECK(memory.physical.hold_at(kAddresses + kGranule) == nullptr);
  CHECK(memory.physical.hold_at(0) == nullptr);
  CHECK(memory.physical.hold_at(UINT64_MAX) == nullptr);
  CHECK(memory.physical.hold(6) == nullptr);
}

TEST_CASE("one call unmaps whatever lies wholly in its range, and only that") {
  Memory memory;
  for (CUmemGenericAllocationHandle handle = 1; handle <= 4; ++handle) {
    memory.create(handle);
    memory.map(kAddresses + (handle - 1) * kGranule, handle);
    memory.release(handle);
  }
  CHECK(memory.physical.begin_unmap(kAddresses + 1, kGranule - 1).empty());
  CHECK(memory.physical.begin_unmap(kAddresses, kGranule - 1).empty());
  CHECK(memory.physical.begin_unmap(kAddresses, 0).empty());
  CHECK(memory.unmap(kAddresses + kGranule, 2 * kGranule) == 2);
  CHECK(memory.physical.hold_at(kAddresses + kGranule) == nullptr);
  CHECK(memory.unmap(kAddresses, UINT64_MAX - kAddresses) == 2);
}

TEST_CASE("an unmap that the driver refused leaves every mapping as it was") {
  Memory memory;
  for (CUmemGenericAllocationHandle handle = 1; handle <= 2; ++handle) {
    memory.create(handle);
    memory.map(kAddresses + (handle - 1) * kGranule, handle);
    CHECK_FALSE(memory.release(handle));
  }
  const auto taken = memory.physical.begin_unmap(kAddresses, 2 * kGranule);
  CHECK(taken.size() == 2);
  CHECK(memory.physical.begin_unmap(kAddresses, 2 * kGranule).empty());
  for (const PhysicalMemory::Mapping &mapping : taken) {
    memory.physical.mapped(mapping.address, mapping.bytes, mapping.piece);
  }
  CHECK(memory.unmap(kAddresses) == 1);
  CHECK(memory.unmap(kAddresses + kGranule) == 1);
}
