#include "logs/convert/pickle_text.h"

namespace ration::logs {

void PickleText::little_endian(std::uint64_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; ++i) {
    text_ += static_cast<char>(value >> (8 * i) & 0xffU);
  }
}

void PickleText::operator()(std::uint64_t number) {
  if (number <= 0xff) {
    text_ += 'K';
    little_endian(number, 1);
  } else if (number <= 0xffff) {
    text_ += 'M';
    little_endian(number, 2);
  } else if (number <= 0x7fffffff) {
    text_ += 'J';
    little_endian(number, 4);
  } else {  // a signed number, preceded by the count of its bytes
    unsigned bytes = 4;
    while (bytes < 8 && number >> (8 * bytes - 1) != 0) {
      ++bytes;
    }
    const bool is_large = bytes == 8 && number >> 63U != 0;
    text_ += '\x8a';
    little_endian(is_large ? 9 : bytes, 1);
    little_endian(number, bytes);
    text_.append(is_large ? 1 : 0, '\0');
  }
}

void PickleText::operator()(std::string_view text) {
  text_ += 'X';
  little_endian(text.size(), 4);
  text_ += text;
}

void PickleText::word(const std::string &text) {
  if (const auto found = words_.find(text); found != words_.end()) {
    recall(found->second);
    return;
  }
  (*this)(std::string_view(text));
  words_.emplace(text, remember());
}

std::uint32_t PickleText::remember() {
  const std::uint32_t number = next_++;
  text_ += number <= 0xff ? 'q' : 'r';
  little_endian(number, number <= 0xff ? 1 : 4);
  return number;
}

void PickleText::recall(std::uint32_t number) {
  text_ += number <= 0xff ? 'h' : 'j';
  little_endian(number, number <= 0xff ? 1 : 4);
}

}  // namespace ration::logs
