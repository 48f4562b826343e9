// Single steps of every kind, in any order.
#include <algorithm>
#include "tests/oracle/maker.h"

namespace oracle {
namespace {

std::string block_name(Maker &maker, bool live) {
  const std::vector<int> blocks = maker.live_blocks();
  if (live && !blocks.empty()) return "b" + std::to_string(maker.one_of(blocks));
  return maker.blocks.empty() ? "foreign"
                              : "b" + std::to_string(maker.below(static_cast<unsigned>(maker.blocks.size())));
}

std::string some_place(Maker &maker) {
  return maker.one_of<std::string>({" start", " start", " middle", " last", " end"});
}

void ask(Maker &maker) {
  const std::string block = maker.chance(10) ? "foreign" : block_name(maker, maker.chance(70));
  switch (maker.below(6)) {
    case 0:
      return maker.step("info");
    case 1:
      return maker.step("total 0");
    case 2:
    case 3:
      return maker.step("range " + block + some_place(maker));
    case 4:
      return maker.step("attribute " + block + some_place(maker) + " " +
                        maker.one_of<std::string>({"1", "2", "3", "4", "6", "7", "8", "9", "11", "12", "13"}));
    default:
      return maker.step("read " + block + some_place(maker));
  }
}

void free_wrongly(Maker &maker) {
  const std::string stream = maker.chance(40) ? " " + maker.some_stream() : "";
  switch (maker.below(4)) {
    case 0:
      return maker.step("free_null" + stream);
    case 1:
      return maker.step("free_foreign" + stream);
    case 2:
      return maker.step("free_again " + block_name(maker, false) + stream);
    default:
      return maker.step("free_inside " + block_name(maker, true) + " " + std::to_string(maker.below(3000)) + stream);
  }
}

void take(Maker &maker) {
  const bool fits = maker.chance(88);
  switch (maker.below(12)) {
    case 0:
    case 1:
      maker.allocate(maker.size(fits), "managed");
      break;
    case 2:
      maker.allocate(maker.size(fits), "pitch");
      break;
    case 3:
    case 4:
      maker.allocate(maker.size(fits), "alloc_async");
      break;
    case 5:
      maker.step(std::string(maker.chance(70) ? "array" : "mipmapped") + " a" + std::to_string(maker.next_array++) +
                 " " + std::to_string(1 + maker.below(2000)) + " " + std::to_string(maker.below(2000)));
      break;
    case 6: {
      const std::string number = std::to_string(200 + maker.next_array++);
      maker.step("physical p" + number + " " + std::to_string(((maker.size(fits) >> 21) + 1) << 21) + " " +
                 std::to_string(std::max(0, maker.device())));
      maker.step("map b" + number);
      if (maker.chance(50)) maker.step("end_physical p" + number);
      if (maker.chance(60)) maker.step("unmap b" + number);
      break;
    }
    default:
      maker.allocate(maker.size(fits));
  }
}

void use_pools(Maker &maker) {
  const std::string device = std::to_string(std::max(0, maker.device()));
  switch (maker.below(4)) {
    case 0:
      return maker.step("threshold default" + device + " " +
                        std::to_string(maker.chance(50) ? ~0ull : maker.below(100) << 20));
    case 1:
      return maker.step("trim default" + device + " 0");
    default: {
      const std::string number = std::to_string(maker.next_pool++);
      const std::string block = "b" + std::to_string(240 + maker.next_pool % 10);
      maker.step("pool q" + number + " " + device);
      maker.step("alloc_from " + block + " " + std::to_string(maker.size(true) / 2 + 1) + " q" + number + " " +
                 maker.some_stream());
      if (maker.chance(50)) maker.step("end_pool q" + number);
      if (maker.chance(60)) maker.step("free_async " + block + " " + maker.some_stream());
    }
  }
}

void work(Maker &maker) {
  const std::string block = block_name(maker, true);
  switch (maker.below(6)) {
    case 0:
    case 1:
      maker.gate(maker.some_stream());
      break;
    case 2:
      return maker.step("fill " + block + " " + maker.some_stream());
    case 3:
      return maker.step("fetch " + block + " " + maker.some_stream());
    case 4:
      return maker.step("copy " + block + " " + block_name(maker, true) + " " + maker.some_stream());
    default:
      maker.set_some_flag();
  }
}

void change_context(Maker &maker) {
  switch (maker.below(6)) {
    case 0:
      maker.step(maker.chance(70) ? "sync" : "sync_stream " + maker.some_stream());
      break;
    case 1:
      if (maker.contexts.size() < 3) {
        maker.make_context(static_cast<int>(maker.below(static_cast<unsigned>(maker.devices))), maker.chance(40));
      }
      break;
    case 2:
    case 3: {
      const Maker::Context &context = maker.one_of(maker.contexts);
      if (context.live || maker.chance(20)) maker.use(context.number);
      break;
    }
    case 4:
      if (maker.chance(30)) maker.step("use none");
      if (maker.chance(30)) maker.step("peer c" + std::to_string(maker.one_of(maker.contexts).number));
      break;
    default:
      if (maker.chance(30)) maker.end_context(maker.one_of(maker.contexts).number);
  }
}

}  // namespace

void add_mixture(Maker &maker, int steps) {
  for (int i = 0; i < steps; ++i) {
    if (maker.threads > 1 && maker.chance(40))
      maker.turn(static_cast<int>(maker.below(static_cast<unsigned>(maker.threads))));
    const unsigned which = maker.below(100);
    if (which < 34) {
      take(maker);
    } else if (which < 52) {
      const std::vector<int> live = maker.live_blocks();
      if (!live.empty()) maker.free(maker.one_of(live), maker.chance(75) ? "free" : "free_async");
    } else if (which < 58) {
      free_wrongly(maker);
    } else if (which < 70) {
      ask(maker);
    } else if (which < 76) {
      use_pools(maker);
    } else if (which < 92) {
      work(maker);
    } else {
      change_context(maker);
    }
  }
}

}  // namespace oracle
