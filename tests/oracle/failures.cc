// Programs of calls that fail: in every state of the thread's context, on a device that is empty or nearly full, with
// wrong sizes, flags, devices and addresses, inside and outside captures.
#include "tests/oracle/maker.h"

namespace oracle {
namespace {

// Calls that take a size, and their variants in addition to the right one.
struct Taker {
  std::string call;
  std::vector<std::string> variants;
};
const std::vector<Taker> kTakers = {{"alloc", {"no_first"}},
                                    {"old", {"no_first"}},
                                    {"pitch", {"no_first", "no_second", "element", "flat", "tall"}},
                                    {"managed", {"no_first", "flags", "single"}},
                                    {"alloc_async", {"no_first"}},
                                    {"alloc_from", {"no_first", "pool"}},
                                    {"physical", {"no_first", "properties", "flags", "type", "device"}},
                                    {"array", {"no_first", "properties", "format", "channels"}},
                                    {"flat_array", {"no_first", "format", "channels"}},
                                    {"mipmapped", {"no_first", "format", "channels", "levels"}}};

// Calls about an address, by the numbers that they take with it.
const std::vector<std::pair<std::string, std::vector<unsigned>>> kAskers = {
    {"attribute", {1, 2, 3, 4, 6, 7, 8, 9, 11, 12, 13, 99}},
    {"attributes", {1, 2, 3, 6, 8, 9, 11, 13, 99}},
    {"range", {0}},
    {"shared", {0}},
    {"retained", {0}},
    {"dma_buf", {0, 4096, 65536}},
    {"unmapped", {0, 2u << 20, 4096}},
    {"mapped", {0, 2u << 20, 4096}},
    {"accessed", {0, 2u << 20, 4096}}};

std::string some_block(Maker &maker) {
  if (maker.blocks.empty() || maker.chance(40)) return maker.chance(70) ? "foreign" : "null";
  return "b" + std::to_string(maker.below(static_cast<unsigned>(maker.blocks.size()))) +
         maker.one_of<std::string>({" start", " middle", " last", " end"});
}

// Too much for the device, or nothing at all; or any size where the variant is wrong.
std::string wrong_size(Maker &maker, bool wrong_otherwise) {
  const std::uint64_t page = std::uint64_t{2} << 20;
  if (wrong_otherwise && maker.chance(60)) return std::to_string(maker.chance(50) ? page : maker.size(true));
  const std::uint64_t limit = maker.limit();
  return std::to_string(maker.one_of<std::uint64_t>({0, limit + 1, (limit / page + 1) * page, 2 * limit,
                                                     std::uint64_t{1} << 44, std::uint64_t{1} << 62, ~std::uint64_t{0},
                                                     ~std::uint64_t{0} - 5, ~std::uint64_t{0} - 511}));
}

void take_wrongly(Maker &maker) {
  const Taker &taker = maker.one_of(kTakers);
  const std::string variant = maker.chance(50) ? "right" : maker.one_of(taker.variants);
  maker.step("try " + taker.call + " " + wrong_size(maker, variant != "right") + " " + variant);
}

void ask_wrongly(Maker &maker) {
  const auto &[call, numbers] = maker.one_of(kAskers);
  const std::string variant = maker.chance(90) ? "right" : "no_first";
  // A place of ours for what the driver reads is a null dereference of the program's own.
  const bool may_be_null = call == "range" || call == "shared" || call == "retained";
  maker.step("try " + call + " " + std::to_string(maker.one_of(numbers)) + " " + (may_be_null ? variant : "right") +
             " " + some_block(maker));
}

void fail_otherwise(Maker &maker) {
  maker.step(maker.one_of<std::string>(
      {"try pinned 0 right",     "try pinned 4096 flags",   "try pinned 4096 no_first", "try registered 0 no_memory",
       "try registered 0 empty", "try registered 0 flags",  "try memory 0 right",       "try memory 0 no_first",
       "try memory 0 no_second", "try total 0 device",      "try opened 0 right",       "try opened 0 flags",
       "try opened 0 no_first",  "try exported 4660 right", "try exported 4660 flags",  "try pool 0 type",
       "try pool 0 device",      "try pool 0 properties",   "try pool 0 no_first",      "try context 0 right",
       "try primary 0 right"}));
}

void change_context(Maker &maker) {
  switch (maker.below(4)) {
    case 0:
      return maker.step("use none");
    case 1:
      if (maker.contexts.size() < 4) maker.make_context(0, maker.chance(40));
      return;
    case 2: {
      const int number = maker.one_of(maker.contexts).number;
      if (maker.contexts[static_cast<size_t>(number)].live) maker.end_context(number);
      return;
    }
    default:
      return maker.use(maker.one_of(maker.contexts).number);
  }
}

void fail_in_a_capture(Maker &maker) {
  const std::string stream = "s" + std::to_string(maker.make_stream());
  maker.step("capture " + stream + " " + std::to_string(maker.below(3)));
  for (unsigned i = maker.below(3); i-- > 0;) maker.chance(60) ? take_wrongly(maker) : ask_wrongly(maker);
  maker.step("end_capture " + stream);
}

}  // namespace

void make_failing(Maker &maker) {
  maker.make_context(0, maker.chance(60));
  if (maker.chance(30)) {  // preallocated, or nearly full
    maker.allocate(maker.room() * (60 + maker.below(40)) / 100);
  }
  const unsigned steps = 4 + maker.below(16);
  for (unsigned i = 0; i < steps; ++i) {
    if (maker.threads > 1 && maker.chance(20))
      maker.turn(static_cast<int>(maker.below(static_cast<unsigned>(maker.threads))));
    const unsigned which = maker.below(100);
    if (which < 45) {
      take_wrongly(maker);
    } else if (which < 68) {
      ask_wrongly(maker);
    } else if (which < 78) {
      fail_otherwise(maker);
    } else if (which < 86) {
      maker.allocate(maker.size(true) / 4 + 1, maker.one_of<std::string>({"alloc", "alloc", "managed", "alloc_async"}));
    } else if (which < 90) {
      const std::vector<int> live = maker.live_blocks();
      if (!live.empty()) maker.free(maker.one_of(live), maker.chance(80) ? "free" : "free_async");
    } else if (which < 95) {
      fail_in_a_capture(maker);
    } else {
      change_context(maker);
    }
  }
}

}  // namespace oracle
