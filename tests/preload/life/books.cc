// books LOG SEED STEPS LIMIT...: a random program over as many devices as LIMITs (bytes that a device can give).
// After every step: held by the log equals held by the simulated device and is within the limit; live in the log equals
// live in this program; a refusal is justified, because no hole and no free room was large enough. Also run with
// RATION_MODE=direct.
#include <stdlib.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/preload/life/claims.h"
#include "tests/preload/programs/fill.h"

namespace {

struct OpenContext {
  CUcontext handle;
  int device;
  bool primary;
  CUstream stream;
  unsigned number = 0;  // as numbered in the log; 0 until it has had an allocation
};

struct Block {
  CUdeviceptr address;
  uint64_t bytes;
  CUcontext context;
};

class Program {
 public:
  Program(const char *log, unsigned seed, std::vector<uint64_t> limits)
      : claims_(log, std::move(limits)), random_(seed) {}

  void step();
  // Frees everything; then each device's whole limit is one block.
  void finish();
  void check();
  void print() const;
  // Every kind of outcome that the test requires; the seed decides which occur.
  bool met_all() const { return taken_ > 0 && refused_ > 0 && lost_ > 0 && misused_ > 0; }

 private:
  uint64_t below(uint64_t bound) { return std::uniform_int_distribution<uint64_t>(0, bound - 1)(random_); }
  [[noreturn]] void fail(const std::string &what) const {
    dprintf(1, "step %d: %s\n", steps_, what.c_str());
    _exit(1);
  }
  void expect(const std::string &what, CUresult seen, CUresult wanted) const {
    if (seen != wanted) {
      fail(what + ": code " + std::to_string(seen));
    }
  }
  void hold(const std::string &wrong) const {
    if (!wrong.empty()) {
      fail(wrong);
    }
  }
  OpenContext *enter_any();
  void open_context();
  void close_context(size_t which);
  void take(OpenContext &context, uint64_t bytes);
  void give_back(size_t which);
  void misuse();
  void work(OpenContext &context);

  preload::Claims claims_;
  std::mt19937_64 random_;
  std::vector<OpenContext> contexts_;
  std::vector<Block> blocks_;
  std::vector<CUdeviceptr> dead_;
  int steps_ = 0, taken_ = 0, refused_ = 0, lost_ = 0, misused_ = 0;
};

OpenContext *Program::enter_any() {
  if (contexts_.empty()) {
    open_context();
  }
  OpenContext &context = contexts_[below(contexts_.size())];
  expect("cuCtxSetCurrent", cuCtxSetCurrent(context.handle), CUDA_SUCCESS);
  return &context;
}

// One primary context for each device, retained once; the others are created.
void Program::open_context() {
  const int device = static_cast<int>(below(static_cast<uint64_t>(claims_.devices())));
  bool primary = below(2) == 0;
  for (const OpenContext &each : contexts_) {
    primary = primary && !(each.primary && each.device == device);
  }
  CUcontext handle = nullptr;
  expect("a context", primary ? cuDevicePrimaryCtxRetain(&handle, device) : cuCtxCreate_v2(&handle, 0, device),
         CUDA_SUCCESS);
  if (!primary) {
    expect("cuCtxPopCurrent_v2", cuCtxPopCurrent_v2(nullptr), CUDA_SUCCESS);  // the context stack is limited
  }
  expect("cuCtxSetCurrent", cuCtxSetCurrent(handle), CUDA_SUCCESS);
  CUstream stream = nullptr;
  expect("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
  contexts_.push_back({handle, device, primary, stream});
}

void Program::close_context(size_t which) {
  const OpenContext context = contexts_[which];
  if (context.primary && below(2) == 0) {
    expect("reset", cuDevicePrimaryCtxReset_v2(context.device), CUDA_SUCCESS);
  }
  expect("the end of a context",
         context.primary ? cuDevicePrimaryCtxRelease_v2(context.device) : cuCtxDestroy_v2(context.handle),
         CUDA_SUCCESS);
  contexts_.erase(contexts_.begin() + static_cast<std::ptrdiff_t>(which));
  lost_ +=
      static_cast<int>(std::erase_if(blocks_, [&](const Block &block) { return block.context == context.handle; }));
}

void Program::take(OpenContext &context, uint64_t bytes) {
  Block block{preload::kBefore, bytes, context.handle};
  const CUresult code = cuMemAlloc_v2(&block.address, bytes);
  if (code == CUDA_ERROR_OUT_OF_MEMORY) {
    ++refused_;
    return hold(claims_.rightly_refused(context.number, context.device, bytes));
  }
  expect("cuMemAlloc_v2", code, CUDA_SUCCESS);
  hold(claims_.handed_out(block.address, bytes, context.device));
  context.number = claims_.context_of(block.address);
  blocks_.push_back(block);
  ++taken_;
}

void Program::give_back(size_t which) {
  const Block block = blocks_[which];
  blocks_[which] = blocks_.back();
  blocks_.pop_back();
  expect("cuMemFree_v2", cuMemFree_v2(block.address), CUDA_SUCCESS);
  dead_.push_back(block.address);
}

// A second free, or one of an address inside a block.
void Program::misuse() {
  CUdeviceptr address = dead_.empty() ? 0x1234 : dead_[below(dead_.size())];
  if (!blocks_.empty() && below(2) == 0) {
    const Block &block = blocks_[below(blocks_.size())];
    address = block.address + 1 + below(block.bytes);
  }
  if (claims_.is_live(address)) {
    return;  // handed out again meanwhile, or a neighbouring block's
  }
  ++misused_;
  expect("a free of no block", cuMemFree_v2(address), CUDA_ERROR_INVALID_VALUE);
}

// Work that is still running when the block is freed.
void Program::work(OpenContext &context) {
  for (const Block &block : blocks_) {
    if (block.context == context.handle) {
      expect("cuMemsetD8Async",
             cuMemsetD8Async(block.address, 1, std::min<uint64_t>(block.bytes, 4096), context.stream), CUDA_SUCCESS);
      return;
    }
  }
}

void Program::step() {
  ++steps_;
  OpenContext &context = *enter_any();
  const uint64_t limit = claims_.limit(context.device);
  const uint64_t what = below(1000);
  const bool filling = steps_ / 256 % 2 == 0;  // reaches the limit, then drops below it
  if (what < (filling ? 750U : 250U)) {
    // Every magnitude up to a quarter of the limit is equally likely.
    const double exponent =
        std::uniform_real_distribution<double>(0, std::log2(static_cast<double>(limit / 4)))(random_);
    take(context, static_cast<uint64_t>(std::exp2(exponent)));
  } else if (what < 850) {
    if (!blocks_.empty()) {
      give_back(below(blocks_.size()));
    }
  } else if (what < 920) {
    work(context);
  } else if (what < 970) {
    misuse();
  } else if (what < 980) {
    expect("cuCtxSynchronize", cuCtxSynchronize(), CUDA_SUCCESS);
  } else if (what < 990 && contexts_.size() < 2 * static_cast<size_t>(claims_.devices()) + 1) {
    open_context();
  } else if (what < 996) {
    close_context(below(contexts_.size()));
  } else if (what == 999) {
    while (!blocks_.empty()) {
      give_back(blocks_.size() - 1);
    }
  }
  check();
}

void Program::check() {
  hold(claims_.hold(blocks_.size()));
  for (const Block &block : steps_ % 256 == 0 ? blocks_ : std::vector<Block>{}) {
    if (!claims_.is_live(block.address)) {
      fail("a block that the log has forgotten");
    }
  }
  if (dead_.size() > 64) {
    dead_.erase(dead_.begin(), dead_.begin() + 32);
  }
}

void Program::finish() {
  ++steps_;
  enter_any();
  while (!blocks_.empty()) {
    give_back(blocks_.size() - 1);
  }
  check();
  for (int device = 0; device < claims_.devices(); ++device) {
    CUcontext handle = nullptr;
    expect("a last context", cuCtxCreate_v2(&handle, 0, device), CUDA_SUCCESS);
    OpenContext last{handle, device, false, nullptr};
    const size_t blocks = blocks_.size();
    take(last, claims_.limit(device) / preload::kGranule * preload::kGranule - preload::kGranule);
    if (blocks_.size() == blocks) {
      fail("not all of device " + std::to_string(device) + " can be had as one block");
    }
    check();
  }
}

void Program::print() const {
  dprintf(1, "taken=%d refused=%d lost=%d misused=%d\n", taken_, refused_, lost_, misused_);
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 5 || cuInit(0) != CUDA_SUCCESS) {
    return 2;
  }
  std::vector<uint64_t> limits;
  for (int i = 4; i < argc; ++i) {
    limits.push_back(strtoull(argv[i], nullptr, 10));
  }
  Program program(argv[1], static_cast<unsigned>(strtoul(argv[2], nullptr, 10)), limits);
  for (int steps = atoi(argv[3]); steps > 0 || !program.met_all(); --steps) {
    program.step();
  }
  program.finish();
  program.print();
  return 0;
}
