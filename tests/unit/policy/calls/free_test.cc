// How a block ends by a free: once, for one thread, and in the log before anybody else can have its address.
#include <algorithm>
#include <thread>

#include "catch.h"
#include "unit/events/log_lines.h"
#include "unit/events/scratch_folder.h"
#include "unit/policy/program.h"

using namespace ration;
using namespace ration::test;

TEST_CASE("a free gives the bytes back to the limit") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  const CUdeviceptr address = program.take(1000);
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
  CHECK(program.take(1000) != kUntouched);
  CHECK(program.tally().devices[0].frees == 1);
}

TEST_CASE("a null free is the driver's to answer and counted apart") {
  FakeDriver driver;
  Program program;
  program.create();
  CHECK(program.free(0) == CUDA_SUCCESS);
  CHECK(driver.calls("cuMemFree_v2") == 1);
  CHECK(program.tally().null_frees == 1);
  CHECK(program.tally().failed_frees == 0);
}

TEST_CASE("a free of what is none of ours is the driver's to answer") {
  FakeDriver driver;
  Program program;
  program.create();
  CHECK(program.free(0x1234) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.calls("cuMemFree_v2") == 1);
  CHECK(program.tally().failed_frees == 1);
  CUdeviceptr foreign = 0;
  REQUIRE(driver.allocate(&foreign, 10) == CUDA_SUCCESS);
  CHECK(program.free(foreign) == CUDA_SUCCESS);
  CHECK(program.tally().devices[0].frees == 0);
}

TEST_CASE("a second free of one block fails and changes no total") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  const CUdeviceptr address = program.take(600);
  REQUIRE(program.free(address) == CUDA_SUCCESS);
  CHECK(program.free(address) == CUDA_ERROR_INVALID_VALUE);
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_frees == 1);
  CHECK(program.tally().devices[0].frees == 1);
}

TEST_CASE("a block whose free the driver refuses lives on") {
  FakeDriver driver;
  Program program(limit_of(10240));
  program.create();
  const CUdeviceptr address = program.take(6144);
  driver.fails["cuMemFree_v2"] = CUDA_ERROR_LAUNCH_FAILED;
  CHECK(program.free(address) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(program.charged() == 6144);
  CHECK(program.tally().failed_frees == 1);
  CHECK(program.tally().devices[0].frees == 0);
  driver.fails.clear();
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(program.charged() == 0);
}

TEST_CASE("of eight threads that free one block one succeeds, and the next owner keeps his") {
  FakeDriver driver;
  Program program(limit_of(1'000'000));
  const CUcontext context = program.create();
  for (int round = 0; round < 50; ++round) {
    const CUdeviceptr address = program.take(512);
    std::atomic<int> freed{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        FakeDriver::current = context;
        freed += program.free(address) == CUDA_SUCCESS ? 1 : 0;
      });
    }
    for (std::thread &thread : threads) {
      thread.join();
    }
    REQUIRE(freed == 1);
    REQUIRE(program.charged() == 0);
  }
  CHECK(program.tally().failed_frees == 50 * 7);
  CHECK(program.tally().devices[0].frees == 50);
}

TEST_CASE("a double free that overlaps the first never reaches the driver") {
  FakeDriver driver;
  Program program;
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(512);
  CUresult second = CUDA_SUCCESS;
  driver.after_free = [&](CUdeviceptr) {
    std::thread([&] {
      FakeDriver::current = context;
      second = program.free(address);
    }).join();
  };
  CHECK(program.free(address) == CUDA_SUCCESS);
  CHECK(second == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.calls("cuMemFree_v2") == 1);
}

TEST_CASE("an address that the driver hands on from inside a free is logged free before it is logged taken") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10'000), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(4096);
  CUdeviceptr again = kUntouched;
  std::atomic<bool> has_it{false};
  driver.after_alloc = [&] { has_it = true; };
  std::thread next_owner;
  driver.after_free = [&](CUdeviceptr) {
    driver.after_free = nullptr;
    next_owner = std::thread([&] {
      FakeDriver::current = context;
      program.allocate(4096, &again);
    });
    while (!has_it) {  // the driver has given it away already
      std::this_thread::yield();
    }
  };
  CHECK(program.free(address) == CUDA_SUCCESS);
  next_owner.join();
  CHECK(again == address);
  CHECK(program.charged() == 4096);
  const std::vector<json> lines = log_lines(folder / "log");
  CHECK(sums_of(lines).one_owner_each);
  CHECK(sums_of(lines).allocs == 2);
  CHECK(program.free(again) == CUDA_SUCCESS);
}

TEST_CASE("a part of a block that the driver hands on from inside its free is logged taken after the free") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10'000), folder / "log");
  const CUcontext context = program.create();
  const CUdeviceptr address = program.take(4096);
  const CUdeviceptr part = address + 1024;
  std::atomic<bool> has_it{false};
  std::thread next_owner;
  driver.after_free = [&](CUdeviceptr) {
    driver.after_free = nullptr;
    next_owner = std::thread([&] {
      FakeDriver::current = context;
      const auto act = [&](policy::Obtained &got) {
        got = {part, 512};
        has_it = true;
        return CUDA_SUCCESS;
      };
      CUdeviceptr taken = kUntouched;
      program.parts.device_memory.allocate({"cuMemAlloc_v2", 512, 512, nullptr, false}, act, &taken);
    });
    while (!has_it) {
      std::this_thread::yield();
    }
    for (int i = 0; i < 1000; ++i) {  // time enough to log it, if nothing held it back
      std::this_thread::yield();
    }
  };
  CHECK(program.free(address) == CUDA_SUCCESS);
  next_owner.join();
  const std::vector<json> lines = log_lines(folder / "log");
  const auto of_block = [&](const char *type, CUdeviceptr block) {
    return std::find_if(lines.begin(), lines.end(), [&](const json &line) {
      return line.at("t") == type && std::stoull(line.at("addr").get<std::string>(), nullptr, 16) == block;
    });
  };
  REQUIRE(of_block("alloc", part) != lines.end());
  CHECK(of_block("free", address) < of_block("alloc", part));
}

TEST_CASE("racing threads leave a log in which no address has two owners") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(20'000), folder / "log");
  const CUcontext context = program.create();
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      FakeDriver::current = context;
      for (unsigned round = 0; round < 300; ++round) {
        CUdeviceptr address = kUntouched;
        if (program.allocate(512 * (1 + (thread + round) % 8), &address) == CUDA_SUCCESS) {
          program.free(address);
        }
      }
    });
  }
  for (std::thread &thread : threads) {
    thread.join();
  }
  program.parts.journal.end(nullptr);
  const std::vector<json> lines = log_lines(folder / "log");
  const Sums sums = sums_of(lines);
  CHECK(sums.one_owner_each);
  CHECK(is_consecutive(lines));
  CHECK(sums.allocs == sums.frees);
  CHECK(lines.back().at("peak").at(0) == sums.peak.at(0));
  CHECK(sums.peak.at(0) <= 20'000);
  CHECK(program.charged() == 0);
  CHECK(driver.live_blocks() == 0);
}

TEST_CASE("a block that ended unseen is ended by the next one at its address") {
  const ScratchFolder folder;
  FakeDriver driver;
  Program program(limit_of(10240), folder / "log");
  program.create();
  const CUdeviceptr address = program.take(4096);
  REQUIRE(driver.free(address) == CUDA_SUCCESS);  // past Ration
  CHECK(program.charged() == 4096);
  CHECK(program.take(4096) == address);
  CHECK(program.charged() == 4096);
  CHECK(sums_of(log_lines(folder / "log")).frees == 1);
}

TEST_CASE("a free from inside the call that frees the same block is the driver's own") {
  FakeDriver driver;
  Program program(limit_of(1000));
  program.create();
  const CUdeviceptr address = program.take(600);
  const CUresult result =
      program.parts.device_memory.free("cuMemFree_v2", address, [&] { return program.free(address); });
  CHECK(result == CUDA_SUCCESS);
  CHECK(driver.live_blocks() == 0);
  CHECK(program.charged() == 0);
  CHECK(program.tally().failed_frees == 0);
}
