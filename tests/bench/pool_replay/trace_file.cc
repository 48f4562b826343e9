#include "tests/bench/pool_replay/trace_file.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <memory>

#include "logs/replay/trace.h"

namespace ration::pool::replay {
namespace {

constexpr std::string_view kXzMagic(
    "\xFD"
    "7zXZ\0",
    6);

// Twice the memory that `xz -9 --extreme` needs to unpack. A file's header may claim a thousand times as much.
constexpr std::uint64_t kMostMemory = std::uint64_t{128} << 20;

std::string decompress(const std::string &path, const std::string &packed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, kMostMemory, LZMA_CONCATENATED) != LZMA_OK) throw TraceError(path + ": no memory");
  const std::unique_ptr<lzma_stream, decltype(&lzma_end)> owner(&stream, lzma_end);
  stream.next_in = reinterpret_cast<const std::uint8_t *>(packed.data());
  stream.avail_in = packed.size();
  std::string content;
  std::array<char, 1 << 16> buffer;
  for (lzma_ret status = LZMA_OK; status != LZMA_STREAM_END;) {
    stream.next_out = reinterpret_cast<std::uint8_t *>(buffer.data());
    stream.avail_out = buffer.size();
    status = lzma_code(&stream, LZMA_FINISH);
    if (status == LZMA_MEMLIMIT_ERROR) throw TraceError(path + ": the xz stream needs too much memory to unpack");
    if (status != LZMA_OK && status != LZMA_STREAM_END) throw TraceError(path + ": the xz stream is damaged");
    content.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  return content;
}

}  // namespace

std::string read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  if (!file) throw TraceError(path + ": cannot be read");
  return content;
}

std::string unpack(const std::string &path, const std::string &content) {
  return content.starts_with(kXzMagic) ? decompress(path, content) : content;
}

std::string_view take_line(std::string_view &text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

}  // namespace ration::pool::replay
