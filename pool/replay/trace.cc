#include "pool/replay/trace.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

namespace ration::pool::replay {
namespace {

constexpr std::string_view kXzMagic(
    "\xFD"
    "7zXZ\0",
    6);

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw TraceError(path + ": cannot be read");
  return content;
}

std::string decompress(const std::string &path, const std::string &packed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, UINT64_MAX, LZMA_CONCATENATED) != LZMA_OK) throw TraceError(path + ": no memory");
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, lzma_end);
  stream.next_in = reinterpret_cast<const std::uint8_t *>(packed.data());
  stream.avail_in = packed.size();
  std::string content;
  std::array<char, 1 << 16> buffer;
  for (lzma_ret status = LZMA_OK; status != LZMA_STREAM_END;) {
    stream.next_out = reinterpret_cast<std::uint8_t *>(buffer.data());
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
    if (status != LZMA_OK && status != LZMA_STREAM_END) throw TraceError(path + ": the xz stream is damaged");
    content.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  return content;
}

std::optional<std::uint64_t> take_number(std::string_view &text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// `a ID BYTES` or `f ID`, and nothing behind it.
std::optional<Operation> parse_line(std::string_view line) {
  const bool is_free = line.substr(0, 2) == "f ";
  if (!is_free && line.substr(0, 2) != "a ") return std::nullopt;
  line.remove_prefix(2);
  const std::optional<std::uint64_t> id = take_number(line);
  if (!id || *id >= std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  std::uint64_t bytes = 0;
  if (!is_free) {
    if (line.empty() || line.front() != ' ') return std::nullopt;
    line.remove_prefix(1);
    const std::optional<std::uint64_t> number = take_number(line);
    if (!number || *number == 0) return std::nullopt;
    bytes = *number;
  }
  if (!line.empty()) return std::nullopt;
  return Operation{static_cast<std::uint32_t>(*id), is_free, bytes};
}

// Follows what is live, so that a trace that no allocator could serve is refused here.
class Builder {
 public:
  // Returns what is wrong with the operation, or null.
  const char *add(const Operation &operation) {
    if (operation.id >= live_.size()) live_.resize(std::size_t{operation.id} + 1);
    std::uint64_t &bytes = live_[operation.id];
    if (operation.is_free ? bytes == 0 : bytes != 0) return operation.is_free ? "is not live" : "is live already";
    if (operation.is_free) {
      bytes_ -= bytes;
      --blocks_;
    } else {
      bytes_ += operation.bytes;
      ++blocks_;
    }
    bytes = operation.bytes;
    trace.peak_bytes = std::max(trace.peak_bytes, bytes_);
    trace.peak_live = std::max(trace.peak_live, blocks_);
    trace.ids = std::max(trace.ids, operation.id + 1);
    trace.operations.push_back(operation);
    return nullptr;
  }
  Trace trace;

 private:
  std::vector<std::uint64_t> live_;
  std::uint64_t bytes_ = 0;
  std::uint64_t blocks_ = 0;
};

}  // namespace

Trace read_trace(const std::string &path) {
  std::string content = read_file(path);
  if (content.starts_with(kXzMagic)) content = decompress(path, content);
  Builder builder;
  std::string_view left = content;
  for (std::uint64_t number = 1; !left.empty(); ++number) {
    const std::size_t length = std::min(left.find('\n'), left.size());
    const std::string_view line = left.substr(0, length);
    left.remove_prefix(std::min(length + 1, left.size()));
    if (line.empty() || line.front() == '#') continue;
    const std::string where = path + ":" + std::to_string(number) + ": ";
    const std::optional<Operation> operation = parse_line(line);
    if (!operation) throw TraceError(where + "neither `a ID BYTES` nor `f ID`: " + std::string(line.substr(0, 80)));
    if (const char *wrong = builder.add(*operation)) {
      throw TraceError(where + "block " + std::to_string(operation->id) + " " + wrong);
    }
  }
  if (builder.trace.operations.empty()) throw TraceError(path + ": no operation in it");
  return std::move(builder.trace);
}

}  // namespace ration::pool::replay
