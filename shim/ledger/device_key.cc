#include "ledger/device_key.h"

#include <cstring>

namespace ration::ledger {
namespace {

constexpr char kOrdinalMark[] = "ordinal";  // with its zero, the first eight bytes of a key without UUID

std::uint64_t mark() {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, kOrdinalMark, sizeof(bytes));
  return bytes;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  const char lowered = static_cast<char>(c | 0x20);
  return lowered >= 'a' && lowered <= 'f' ? lowered - 'a' + 10 : -1;
}

}  // namespace

WideValue device_key(std::string_view uuid, int ordinal) {
  unsigned char bytes[16] = {};
  std::size_t digits = 0;
  const std::size_t start = uuid.find('-') == std::string_view::npos ? 0 : uuid.find('-') + 1;
  for (const char c : uuid.substr(start)) {
    const int digit = digit_of(c);
    if (digit < 0 || digits == 2 * sizeof(bytes)) {
      continue;
    }
    bytes[digits / 2] = static_cast<unsigned char>(bytes[digits / 2] << 4 | digit);
    ++digits;
  }
  WideValue key;
  std::memcpy(&key.low, bytes, sizeof(key.low));
  std::memcpy(&key.high, bytes + sizeof(key.low), sizeof(key.high));
  if (digits != 2 * sizeof(bytes) || (key.low == 0 && key.high == 0)) {
    return {mark(), static_cast<std::uint64_t>(ordinal)};
  }
  return key;
}

std::string uuid_text(const char (&bytes)[16]) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < sizeof(bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string device_text(WideValue key) {
  if (key.low == mark()) {
    return "ordinal " + std::to_string(key.high);
  }
  char bytes[16];
  std::memcpy(bytes, &key.low, sizeof(key.low));
  std::memcpy(bytes + sizeof(key.low), &key.high, sizeof(key.high));
  return uuid_text(bytes);
}

}  // namespace ration::ledger
