#include "logs/convert/live_blocks.h"

#include <charconv>
#include <utility>

namespace ration::logs {
namespace {

constexpr std::uint64_t kFirstArray = std::uint64_t{1} << 50;
constexpr std::uint64_t kFirstPhysical = std::uint64_t{1} << 51;

std::string key_of_block(const Record &record) {
  return std::string(record.text("addr")) += record.text("kind");
}

}  // namespace

std::uint64_t number_of_hex(std::string_view text) {
  std::uint64_t number = 0;
  if (text.substr(0, 2) == "0x") {
    text.remove_prefix(2);
  }
  std::from_chars(text.data(), text.data() + text.size(), number, 16);
  return number;
}

std::uint64_t LiveBlock::unique_address() const {
  const std::uint64_t number = number_of_hex(address);
  if (number >= kFirstArray) {
    return number;
  }
  return kind == "array" ? number + kFirstArray : kind == "vmm" ? number + kFirstPhysical : number;
}

const LiveBlock &LiveBlocks::add(const Record &record) {
  LiveBlock &block = blocks_[key_of_block(record)];
  block.device = record.device();
  block.address = record.text("addr");
  block.kind = record.text("kind");
  block.api = record.text("api");
  block.bytes = record.number("size");
  block.requested = record.number("req");
  block.thread = record.number("tid");
  block.stream = record.number("stream");
  block.slab = record.number("slab");
  block.stack = record.number("stack");
  block.seq = record.number("seq");
  block.charged = record.is_charged();
  return block;
}

std::optional<LiveBlock> LiveBlocks::remove(const Record &record) {
  const auto found = blocks_.find(key_of_block(record));
  if (found == blocks_.end()) {
    return std::nullopt;
  }
  LiveBlock block = std::move(found->second);
  blocks_.erase(found);
  return block;
}

}  // namespace ration::logs
