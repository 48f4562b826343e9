// as_driver CASE BYTES [BLOCKS]: calls whose answers must be those of a driver on a device of the limit's size. Prints
// the code of each; `waits` where a call returned only after the queued work was let go, which happens after kPatience.
// The queued work is a host function that ends when the program says so, at the end of the case.
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr auto kPatience = std::chrono::seconds(5);

std::atomic<int> let_go{0};
std::atomic<int> running{0};
std::mutex programs_lock;

void until_let_go(void *) {
  running = 1;
  running.notify_all();
  let_go.wait(0);
}
// Longer than a request waits for an idle device.
void ends_by_itself(void *) {
  running = 1;
  running.notify_all();
  std::mutex mutex;
  std::unique_lock guard(mutex);
  std::condition_variable().wait_for(guard, std::chrono::milliseconds(1500), [] { return false; });
}
void takes_the_lock(void *) {
  const std::lock_guard guard(programs_lock);
}
void takes_a_while(void *) {
  for (int turn = 0; turn < 1'000'000; ++turn) let_go.load();
}

// Lets the work go when one call lasts too long.
class Watch {
 public:
  Watch() : thread_([this] { watch(); }) {}
  ~Watch() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  template <class Call>
  CUresult operator()(const char *name, const Call &call) {
    const bool was_let_go = let_go != 0;
    since_ = std::chrono::steady_clock::now().time_since_epoch().count();
    const CUresult result = call();
    since_ = 0;
    printf("%s: %d%s\n", name, static_cast<int>(result), !was_let_go && let_go != 0 ? ", waits" : "");
    return result;
  }

 private:
  void watch() {
    std::unique_lock guard(mutex_);
    while (!changed_.wait_for(guard, std::chrono::milliseconds(10), [this] { return over_; })) {
      const auto since = since_.load();
      const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
      if (since != 0 && now - since > std::chrono::nanoseconds(kPatience).count()) {
        let_go = 1;
        let_go.notify_all();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<std::chrono::steady_clock::rep> since_{0};
  std::thread thread_;
};

class Program {
 public:
  CUresult open() {
    CUcontext made = nullptr;
    const CUresult result = cuDevicePrimaryCtxRetain(&made, 0);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(made) : result;
  }
  CUdeviceptr allocate(size_t bytes) {
    CUdeviceptr block = 0;
    watch_("cuMemAlloc", [&] { return cuMemAlloc_v2(&block, bytes); });
    return block;
  }
  CUdeviceptr allocate_managed(size_t bytes) {
    CUdeviceptr block = 0;
    watch_("cuMemAllocManaged", [&] { return cuMemAllocManaged(&block, bytes, CU_MEM_ATTACH_GLOBAL); });
    return block;
  }
  void free(CUdeviceptr block) {
    watch_("cuMemFree", [&] { return cuMemFree_v2(block); });
  }
  void synchronise() {
    watch_("cuCtxSynchronize", [] { return cuCtxSynchronize(); });
  }
  void queue(CUhostFn function) {
    CUstream stream = nullptr;
    watch_("cuStreamCreate", [&] { return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING); });
    watch_("cuLaunchHostFunc", [&] { return cuLaunchHostFunc(stream, function, nullptr); });
  }
  // From here on the device is at work until the program's end.
  void start_work() {
    queue(until_let_go);
    running.wait(0);
  }

 private:
  Watch watch_;
};

// A block of three quarters of the device, again and again, with work after each free.
void in_turn(Program &program, size_t bytes) {
  for (int turn = 0; turn < 50; ++turn) {
    const CUdeviceptr block = program.allocate(bytes / 4 * 3);
    program.free(block);
    program.queue(takes_a_while);
  }
  program.synchronise();
  program.allocate(bytes / 4 * 3);
  program.allocate(bytes / 4);
}

void large_after_idle(Program &program, size_t bytes) {
  const CUdeviceptr block = program.allocate(bytes / 8 * 5);
  program.free(block);
  program.start_work();
  program.allocate(bytes / 8 * 5);
}

void all_after_idle(Program &program, size_t bytes) {
  std::vector<CUdeviceptr> blocks(16);
  for (CUdeviceptr &block : blocks) block = program.allocate(bytes / 16);
  for (const CUdeviceptr block : blocks) program.free(block);
  program.start_work();
  for (CUdeviceptr &block : blocks) block = program.allocate(bytes / 16);
}

void small_after_synchronise(Program &program, size_t bytes) {
  std::vector<CUdeviceptr> blocks(512);
  for (CUdeviceptr &block : blocks) block = program.allocate(bytes / 512);
  for (const CUdeviceptr block : blocks) program.free(block);
  program.synchronise();
  program.start_work();
  for (CUdeviceptr &block : blocks) block = program.allocate(bytes / 512);
}

// The slab of the freed block is too small, and must not go back to the driver while the device is at work.
void larger_beside_work(Program &program, size_t bytes) {
  const CUdeviceptr block = program.allocate(bytes / 64 * 30);
  program.free(block);
  program.start_work();
  program.allocate(bytes / 64 * 50);
  program.allocate_managed(bytes / 64 * 50);
}

// The free comes while work runs that ends by itself. The larger block needs what was freed and what was never used.
void larger_than_freed_during_work(Program &program, size_t bytes) {
  const CUdeviceptr block = program.allocate(bytes / 64 * 30);
  program.queue(ends_by_itself);
  running.wait(0);
  program.free(block);
  program.allocate(bytes / 64 * 50);
}

void never_fits(Program &program, size_t bytes) {
  program.allocate(bytes / 64);
  program.allocate(bytes / 60 * 49);
  program.start_work();
  program.allocate(bytes / 60 * 50);
  program.allocate_managed(bytes / 60 * 50);
  program.allocate(bytes * 4);
}

// Of three blocks one is small. All are freed on an idle device; then work begins.
void mixed_after_idle(Program &program, size_t bytes) {
  const CUdeviceptr first = program.allocate(bytes / 100 * 39);
  const CUdeviceptr small = program.allocate(bytes / 200);
  const CUdeviceptr second = program.allocate(bytes / 100 * 39);
  for (const CUdeviceptr block : {first, small, second}) program.free(block);
  program.start_work();
  program.allocate(bytes / 100 * 68);
}

// With nothing left, what is wrong with a request still comes first.
void invalid_when_full(Program &program, size_t bytes) {
  program.allocate(bytes);
  CUdeviceptr block = 0;
  size_t pitch = 0;
  for (const unsigned flags : {0U, 1U, 7U}) printf("managed %u: %d\n", flags, cuMemAllocManaged(&block, bytes, flags));
  for (const unsigned element : {4U, 5U}) {
    printf("pitch %u: %d\n", element, cuMemAllocPitch(&block, &pitch, bytes / 8, 8, element));
  }
  for (const unsigned channels : {0U, 3U, 4U, 5U}) {
    for (const unsigned format : {0x20U, 0x21U}) {
      CUDA_ARRAY3D_DESCRIPTOR shape{};
      shape.Width = shape.Height = 4096;
      shape.Format = static_cast<CUarray_format>(format);
      shape.NumChannels = channels;
      CUarray array = nullptr;
      printf("array %u of %u: %d\n", channels, format, cuArray3DCreate(&array, &shape));
    }
  }
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  printf("physical: %d %d %d\n", cuMemCreate(&handle, bytes, &prop, 0), cuMemCreate(&handle, (3U << 20) + 1, &prop, 0),
         cuMemCreate(&handle, bytes, &prop, 7));
}

// The device's work needs a lock that the program holds while it allocates.
void allocates_under_a_lock(Program &program, size_t bytes) {
  for (int turn = 0; turn < 20; ++turn) {
    const CUdeviceptr block = program.allocate(bytes / 8 * 5);
    program.queue(takes_a_while);
    program.queue(takes_the_lock);
    program.free(block);
    const std::lock_guard guard(programs_lock);
    program.free(program.allocate(bytes / 8 * 5));
  }
}

// What one block of a full device leaves the next block can have, even if other processes hold memory of it.
void again_when_full(Program &program, size_t bytes) {
  program.allocate_managed(bytes / 16);
  std::vector<CUdeviceptr> blocks(60);
  for (CUdeviceptr &block : blocks) block = program.allocate(bytes / 64);
  program.allocate(bytes / 64);
  for (size_t block = 0; block < blocks.size(); block += 3) {
    program.free(blocks[block]);
    blocks[block] = program.allocate(bytes / 64);
  }
  for (size_t block = 0; block < blocks.size(); block += 3) program.free(blocks[block]);
  for (size_t block = 0; block < blocks.size(); block += 3) program.allocate(bytes / 64);
  program.allocate(bytes / 64);
}

// So many blocks of the same size that nothing is left.
void fits(Program &program, size_t bytes, size_t blocks) {
  for (size_t block = 0; block < blocks; ++block) program.allocate(bytes / blocks / 512 * 512);
}
// The driver rounds such a size up, so that one of the blocks may not fit.
void fits_rounded(Program &program, size_t bytes, size_t blocks) {
  for (size_t block = 0; block < blocks; ++block) program.allocate(bytes / blocks);
}

// Equal blocks until one is refused. Prints how many there are.
void fill(size_t block_bytes) {
  size_t served = 0;
  for (CUdeviceptr address = 0; cuMemAlloc(&address, block_bytes) == CUDA_SUCCESS;) ++served;
  printf("served %zu\n", served);
}

// Equal blocks that fill the limit, by numbers of blocks in turn, each time after all have left. With other blocks in
// between, of which nothing stays either. Prints the refusals.
void fits_in_turn(size_t bytes, const std::vector<size_t> &numbers) {
  size_t refused = 0;
  size_t state = 1;
  for (const size_t blocks : numbers) {
    std::vector<CUdeviceptr> held;
    for (size_t block = 0; block < blocks; ++block) {
      CUdeviceptr address = 0;
      if (cuMemAlloc(&address, bytes / blocks / 512 * 512) == CUDA_SUCCESS) {
        held.push_back(address);
      } else {
        ++refused;
      }
    }
    for (const CUdeviceptr address : held) cuMemFree(address);
    for (int turn = 0; turn < 20; ++turn) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      CUdeviceptr address = 0;
      refused += cuMemAlloc(&address, 1 + (state >> 16) % (bytes / 2)) == CUDA_SUCCESS ? 0 : 1;
      cuMemFree(address);
    }
  }
  printf("refused %zu\n", refused);
}

// Threads that together never need more than there is. Prints the refusals.
CUresult ordered(CUdeviceptr *block, size_t bytes) {
  return cuMemAllocAsync(block, bytes, nullptr);
}
CUresult free_ordered(CUdeviceptr block) {
  return cuMemFreeAsync(block, nullptr);
}

void threads(int count, size_t block_bytes, int turns, CUresult (*allocate)(CUdeviceptr *, size_t) = cuMemAlloc_v2,
             CUresult (*free)(CUdeviceptr) = cuMemFree_v2) {
  std::atomic<int> refused{0};
  CUcontext current = nullptr;
  cuCtxGetCurrent(&current);
  std::vector<std::thread> all;
  for (int thread = 0; thread < count; ++thread) {
    all.emplace_back([&] {
      cuCtxSetCurrent(current);
      for (int turn = 0; turn < turns; ++turn) {
        CUdeviceptr block = 0;
        if (allocate(&block, block_bytes) != CUDA_SUCCESS) {
          ++refused;
        } else {
          free(block);
        }
      }
    });
  }
  for (std::thread &thread : all) thread.join();
  printf("refused: %d\n", refused.load());
}

// Threads that allocate in two contexts in turn, and free blocks of either, within the limit: what the pool of one
// context holds must serve the other.
void threads_of_two_contexts(size_t bytes) {
  constexpr size_t kPage = 2 << 20;
  CUctxCreateParams plain{};
  CUcontext contexts[2] = {};
  for (CUcontext &context : contexts) cuCtxCreate(&context, &plain, 0, 0);
  std::mutex mutex;
  std::vector<std::pair<CUdeviceptr, size_t>> blocks;
  size_t held = 0;
  std::atomic<int> refused{0};
  const auto free_until_fits = [&](size_t size) {
    while (held + size > bytes && !blocks.empty()) {
      const auto [address, freed] = blocks[blocks.size() / 2];
      blocks.erase(blocks.begin() + static_cast<ptrdiff_t>(blocks.size() / 2));
      cuMemFree(address);
      held -= freed;
    }
  };
  std::vector<std::thread> all;
  for (unsigned seed = 1; seed <= 3; ++seed) {
    all.emplace_back([&, state = seed * 97]() mutable {
      for (int turn = 0; turn < 300; ++turn) {
        state = state * 1664525 + 1013904223;
        const size_t size = kPage * (1 + (state >> 16) % (bytes / kPage / 5));
        cuCtxSetCurrent(contexts[state >> 31]);
        {
          const std::lock_guard guard(mutex);
          free_until_fits(size);
          if (held + size > bytes) continue;
          held += size;
        }
        CUdeviceptr block = 0;
        const bool is_refused = cuMemAlloc(&block, size) != CUDA_SUCCESS;
        const std::lock_guard guard(mutex);
        if (is_refused) {
          ++refused;
          held -= size;
        } else {
          blocks.emplace_back(block, size);
        }
      }
    });
  }
  for (std::thread &thread : all) thread.join();
  printf("refused: %d\n", refused.load());
}

// Each thread takes two of eight blocks that fill the limit, and again: a thread that finds the pool empty in between
// makes one chunk of its chunks, while the others go on. That happens at a program's beginning only.
void threads_at_first(size_t bytes) {
  std::atomic<int> refused{0};
  std::vector<std::thread> all;
  for (int thread = 0; thread < 4; ++thread) {
    all.emplace_back([&] {
      CUctxCreateParams plain{};
      CUcontext own = nullptr;
      cuCtxCreate(&own, &plain, 0, 0);
      for (int turn = 0; turn < 2; ++turn) {
        CUdeviceptr blocks[2] = {};
        for (CUdeviceptr &block : blocks) {
          if (cuMemAlloc_v2(&block, bytes / 8) != CUDA_SUCCESS) ++refused;
        }
        for (const CUdeviceptr block : blocks) cuMemFree_v2(block);
      }
    });
  }
  for (std::thread &thread : all) thread.join();
  printf("refused: %d\n", refused.load());
}

// Blocks of half the limit in turn, each with work after it, while another thread captures for half of the time.
void beside_captures(size_t bytes) {
  std::atomic<bool> over{false};
  CUcontext context = nullptr;
  cuCtxGetCurrent(&context);
  std::thread capturing([&] {
    cuCtxSetCurrent(context);
    CUstream stream = nullptr;
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    while (!over) {
      CUgraph graph = nullptr;
      cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
      takes_a_while(nullptr);
      cuStreamEndCapture(stream, &graph);
      cuGraphDestroy(graph);
      takes_a_while(nullptr);
    }
  });
  int refused = 0;
  for (int turn = 0; turn < 2000; ++turn) {
    CUdeviceptr block = 0;
    if (cuMemAlloc(&block, bytes / 2) != CUDA_SUCCESS) {
      ++refused;
      continue;
    }
    cuMemsetD8Async(block, 1, 4096, nullptr);
    cuMemFree(block);
  }
  over = true;
  capturing.join();
  printf("refused: %d\n", refused);
}

int run(std::string_view name, size_t bytes, size_t blocks) {
  const std::map<std::string_view, void (*)(Program &, size_t)> cases = {
      {"in_turn", in_turn},
      {"large_after_idle", large_after_idle},
      {"all_after_idle", all_after_idle},
      {"small_after_synchronise", small_after_synchronise},
      {"larger_beside_work", larger_beside_work},
      {"larger_than_freed_during_work", larger_than_freed_during_work},
      {"never_fits", never_fits},
      {"invalid_when_full", invalid_when_full},
      {"mixed_after_idle", mixed_after_idle},
      {"again_when_full", again_when_full},
      {"allocates_under_a_lock", allocates_under_a_lock}};
  Program program;
  if (cuInit(0) != CUDA_SUCCESS || program.open() != CUDA_SUCCESS) return 2;
  if (const auto found = cases.find(name); found != cases.end()) {
    found->second(program, bytes);
  } else if (name == "threads_of_two_contexts") {
    threads_of_two_contexts(bytes);
  } else if (name == "threads") {
    threads(8, bytes / 64 * 7, 20000);
  } else if (name == "threads_large") {
    threads(8, bytes / 1024 * 96, 5000);
  } else if (name == "threads_ordered") {  // each may make the driver's pool grow by half of the limit
    threads(8, bytes / 64, 2000, ordered, free_ordered);
  } else if (name == "threads_at_first") {
    threads_at_first(bytes);
  } else if (name == "beside_captures") {
    beside_captures(bytes);
  } else if (name == "fits") {
    fits(program, bytes, blocks);
  } else if (name == "fits_rounded") {
    fits_rounded(program, bytes, blocks);
  } else if (name == "fill") {
    fill(blocks);
  } else if (name == "fits_in_turn") {
    std::vector<size_t> numbers;
    for (size_t number = 1; number <= 66; ++number) {  // each of 1 to 66 once, in any order
      if (number * blocks % 67 <= 64) numbers.push_back(number * blocks % 67);
    }
    fits_in_turn(bytes, numbers);
  } else {
    return 2;
  }
  let_go = 1;
  let_go.notify_all();
  return 0;
}

}  // namespace

int main(int argc, char **argv) {
  return argc > 2 ? run(argv[1], strtoull(argv[2], nullptr, 10), argc > 3 ? strtoull(argv[3], nullptr, 10) : 1) : 2;
}
