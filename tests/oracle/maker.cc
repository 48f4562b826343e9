#include "tests/oracle/maker.h"

#include <algorithm>

namespace oracle {
namespace {

constexpr std::uint64_t kKiB = 1024, kMiB = kKiB * kKiB, kGiB = kKiB * kMiB;

std::uint64_t round_up(std::uint64_t bytes, std::uint64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Maker::Maker(std::uint64_t seed, std::uint64_t number) : random_(seed * 0x9e3779b97f4a7c15 + number) {
  const std::vector<std::uint64_t> limits = {
      64 * kMiB, 64 * kMiB, 64 * kMiB + 300 * kKiB, 100 * kMiB, 256 * kMiB, 512 * kMiB, kGiB, 8 * kGiB};
  limit_ = one_of(limits);
  devices = chance(20) ? 2 : 1;
  threads = chance(70) ? 1 : 2 + static_cast<int>(below(2));
  used_.resize(2);
  current_.assign(4, -1);
  line("program " + std::to_string(number));
  line("limit " + std::to_string(limit_));
  line("devices " + std::to_string(devices));
}

unsigned Maker::below(unsigned end) {
  return static_cast<unsigned>(random_() % end);
}

void Maker::step(const std::string &text) {
  text_ << 't' << thread_ << ' ' << text << '\n';
}

void Maker::turn(int thread) {
  thread_ = thread;
  if (current_[static_cast<size_t>(thread)] < 0 && !contexts.empty() && !chance(3)) {
    const Context &context = contexts[below(static_cast<unsigned>(contexts.size()))];
    if (context.live) use(context.number);
  }
}

int Maker::device() const {
  return context() < 0 ? -1 : contexts[static_cast<size_t>(context())].device;
}

std::uint64_t Maker::room() const {
  const std::uint64_t used = used_[static_cast<size_t>(std::max(0, device()))];
  return used < limit_ ? limit_ - used : 0;
}

std::uint64_t Maker::size(bool fits) {
  std::uint64_t bytes = 0;
  switch (below(10)) {
    case 0:
    case 1:
    case 2:
      bytes = limit_ / (1 + below(chance(70) ? 8 : 64));
      break;
    case 3:
      bytes = (1 + below(64)) * kMiB;
      break;
    case 4:
      bytes = (1 + below(32)) * 2 * kMiB;
      break;
    case 5:
      bytes = (1 + below(2000)) * 512;
      break;
    case 6:
      bytes = room();
      break;
    case 7:
      bytes = room() * (80 + below(20)) / 100;
      break;
    default:
      bytes = 1 + below(chance(50) ? 100'000 : 10'000'000);
  }
  if (chance(20)) bytes += one_of<std::uint64_t>({1, 511, 512, ~std::uint64_t{0}, ~std::uint64_t{511}});
  if (!fits)
    return chance(50)   ? bytes
           : chance(30) ? 0
           : chance(30) ? ~std::uint64_t{0} - below(1025)
                        : room() + 1 + below(2000);
  if (round_up(bytes, 512) > room()) bytes = room() / (1 + below(4)) / 512 * 512;
  return std::max<std::uint64_t>(bytes, 1);
}

void Maker::use(int context) {
  current_[static_cast<size_t>(thread_)] = context;
  step("use c" + std::to_string(context));
}

int Maker::make_context(int device, bool primary) {
  const int number = static_cast<int>(contexts.size());
  contexts.push_back({number, device, primary, true});
  step((primary ? "retain c" : "create c") + std::to_string(number) + " " + std::to_string(device));
  use(number);
  return number;
}

void Maker::end_context(int number) {
  Context &context = contexts[static_cast<size_t>(number)];
  step((context.primary ? chance(50) ? "reset c" : "release c" : "destroy c") + std::to_string(number));
  context.live = false;
  for (Block &block : blocks) {
    if (block.live && block.context == number) {
      block.live = false;
      used_[static_cast<size_t>(block.device)] -= block.cost;
    }
  }
  for (Stream &stream : streams) stream.live = stream.live && stream.context != number;
  std::replace(current_.begin(), current_.end(), number, -1);
}

int Maker::make_stream() {
  const int number = static_cast<int>(streams.size());
  streams.push_back({number, context(), true});
  step("stream s" + std::to_string(number) + (chance(60) ? " nonblocking" : " blocking"));
  return number;
}

std::string Maker::some_stream() {
  std::vector<std::string> names = {"default", "default", "legacy", "own"};
  for (const Stream &stream : streams) {
    if (stream.live && stream.context == context()) names.insert(names.end(), 4, "s" + std::to_string(stream.number));
  }
  if (names.size() < 8 && context() >= 0 && chance(40)) return "s" + std::to_string(make_stream());
  return one_of(names);
}

int Maker::allocate(std::uint64_t bytes, const std::string &api) {
  const int number = static_cast<int>(blocks.size());
  if (number >= 250) return -1;
  const std::string name = "b" + std::to_string(number);
  std::string text = api + " " + name + " ";
  Block block{number, bytes, round_up(bytes, 512), std::max(0, device()), context(), 'p', true};
  if (api == "pitch") {
    const std::uint64_t width = 1 + below(4000);
    const std::uint64_t height = std::max<std::uint64_t>(1, bytes / round_up(width, 512));
    block.cost = block.bytes = round_up(width, 512) * height;
    text += std::to_string(width) + " " + std::to_string(height);
  } else if (api == "alloc_async") {
    block.kind = 'o';
    block.context = -1;
    text += std::to_string(bytes) + " " + some_stream();
  } else {
    text += std::to_string(bytes);
    if (api == "alloc" && chance(8)) text += bytes < kGiB && chance(30) ? " old" : " looked_up";
  }
  if (bytes == 0 || bytes > limit_ || block.cost > room()) block.live = false;
  if (block.live) used_[static_cast<size_t>(block.device)] += block.cost;
  blocks.push_back(block);
  step(text);
  return number;
}

void Maker::free(int number, const std::string &how) {
  Block &block = blocks[static_cast<size_t>(number)];
  if (block.live) used_[static_cast<size_t>(block.device)] -= block.cost;
  block.live = false;
  step(how + " b" + std::to_string(number) + (how == "free_async" ? " " + some_stream() : ""));
}

int Maker::gate(const std::string &stream) {
  const int flag = next_flag++ % 64;
  closed_.push_back(flag);
  step((chance(60) ? "kernel " : "host_function ") + stream + " f" + std::to_string(flag));
  return flag;
}

void Maker::set_some_flag() {
  if (closed_.empty()) return;
  const size_t index = below(static_cast<unsigned>(closed_.size()));
  step("set f" + std::to_string(closed_[index]));
  closed_.erase(closed_.begin() + static_cast<std::ptrdiff_t>(index));
}

std::vector<int> Maker::live_blocks() const {
  std::vector<int> live;
  for (const Block &block : blocks) {
    if (block.live) live.push_back(block.number);
  }
  return live;
}

}  // namespace oracle
