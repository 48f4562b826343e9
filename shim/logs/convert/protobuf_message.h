// Writes one message of protocol buffers, field by field. Layer: logs. Values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ration::logs {

class ProtobufMessage {
 public:
  // Writes a field of any integer type that is not zigzag-encoded. Leaves out 0, the default value.
  void number(unsigned field, std::uint64_t value) {
    if (value != 0) {
      varint(field << 3U);
      varint(value);
    }
  }
  void bytes(unsigned field, std::string_view value) {
    varint(field << 3U | 2U);
    varint(value.size());
    text_ += value;
  }
  void message(unsigned field, const ProtobufMessage &value) { bytes(field, value.text_); }
  void packed(unsigned field, const std::vector<std::uint64_t> &values) {
    ProtobufMessage all;
    for (const std::uint64_t each : values) {
      all.varint(each);
    }
    message(field, all);
  }

  const std::string &text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    constexpr std::uint64_t kSevenBits = 0x7f;
    for (; value > kSevenBits; value >>= 7U) {
      text_ += static_cast<char>((value & kSevenBits) | 0x80U);
    }
    text_ += static_cast<char>(value);
  }

  std::string text_;
};

}  // namespace ration::logs
