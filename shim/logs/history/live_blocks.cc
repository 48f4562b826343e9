#include "logs/history/live_blocks.h"

#include <charconv>

namespace ration::logs {
namespace {

constexpr std::uint64_t kFirstArray = std::uint64_t{1} << 50;
constexpr std::uint64_t kFirstPhysical = std::uint64_t{1} << 51;

// False: the text is not exactly one number of this form.
bool read_hex(std::string_view text, std::uint64_t &number) {
  const std::size_t prefix = text.starts_with("0x") ? 2 : 0;
  const char *const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + prefix, last, number, 16);
  return prefix != 0 && error == std::errc{} && end == last;
}

}  // namespace

std::uint64_t number_of_hex(std::string_view text) {
  std::uint64_t number = 0;
  (void)read_hex(text, number);
  return number;
}

BlockKey BlockNames::key_of(const Record &record) {
  const std::string_view address = record.text("addr");
  const std::string kind(record.text("kind"));
  std::uint64_t number = 0;
  return read_hex(address, number) ? BlockKey{number, names_.number(kind)}
                                   : BlockKey{0, names_.number(std::string(address) + '\n' + kind)};
}

LiveBlock BlockNames::block_of(const Record &alloc) {
  return {.address = number_of_hex(alloc.text("addr")),
          .bytes = alloc.number("size"),
          .requested = alloc.number("req"),
          .stream = alloc.number("stream"),
          .slab = alloc.number("slab"),
          .stack = alloc.number("stack"),
          .seq = alloc.number("seq"),
          .ts_ns = alloc.number("ts"),
          .device = static_cast<std::uint32_t>(alloc.device()),
          .api = names_.number(std::string(alloc.text("api"))),
          .kind = names_.number(std::string(alloc.text("kind"))),
          .is_charged = alloc.is_charged()};
}

std::uint64_t BlockNames::unique_address(const LiveBlock &block) const {
  if (block.address >= kFirstArray) {
    return block.address;
  }
  const std::string &kind = kind_of(block);
  return block.address + (kind == "array" ? kFirstArray : kind == "vmm" ? kFirstPhysical : 0);
}

}  // namespace ration::logs
