#include "logs/reader/decoder.h"

#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <cerrno>
#include <cstring>

namespace ration::logs {
namespace {

// True for the first byte of a zstd frame (RFC 8878, 3.1), or of a skippable frame, with which pzstd begins. A plain
// log begins with '{'.
bool begins_a_frame(int byte) {
  return byte == 0x28 || (byte >= 0x50 && byte <= 0x5f);
}

constexpr int kGzip = 0x1f;  // the first byte of a gzip member (RFC 1952, 2.3.1)

class Zstd : public Decoder {
 public:
  ~Zstd() override { ZSTD_freeDStream(stream_); }
  Step step(Packed &in, std::vector<char> &out) override {
    if (stream_ == nullptr) {
      return {0, false, std::strerror(ENOMEM)};
    }
    ZSTD_inBuffer from{in.data, in.size, in.at};
    ZSTD_outBuffer into{out.data(), out.size(), 0};
    const std::size_t wanted = ZSTD_decompressStream(stream_, &into, &from);
    in.at = from.pos;
    has_text_ |= into.pos != 0;
    if (ZSTD_isError(wanted) == 0) {
      return {into.pos, wanted != 0, {}};
    }
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(wanted);
    return {0, false,
            code == ZSTD_error_prefix_unknown && !has_text_
                ? "not a log of Ration: it begins neither as a log nor as one that zstd compressed"
                : std::string("it cannot be decompressed: ") + ZSTD_getErrorString(code)};
  }

 private:
  ZSTD_DStream *const stream_ = ZSTD_createDStream();
  bool has_text_ = false;
};

class Gzip : public Decoder {
 public:
  Gzip() : is_ready_(inflateInit2(&stream_, 16 + MAX_WBITS) == Z_OK) {}
  ~Gzip() override { inflateEnd(&stream_); }
  Step step(Packed &in, std::vector<char> &out) override {
    stream_.next_in = reinterpret_cast<Bytef *>(in.data + in.at);
    stream_.avail_in = static_cast<uInt>(in.size - in.at);
    stream_.next_out = reinterpret_cast<Bytef *>(out.data());
    stream_.avail_out = static_cast<uInt>(out.size());
    const int result = is_ready_ ? inflate(&stream_, Z_NO_FLUSH) : Z_MEM_ERROR;
    in.at = in.size - stream_.avail_in;
    const std::size_t written = out.size() - stream_.avail_out;
    if (result == Z_STREAM_END) {  // another gzip member may follow
      inflateReset(&stream_);
      return {written, false, {}};
    }
    return result == Z_OK || result == Z_BUF_ERROR
               ? Step{written, true, {}}
               : Step{0, false, std::string("it cannot be decompressed: ") + zError(result)};
  }

 private:
  z_stream stream_{};
  const bool is_ready_;
};

}  // namespace

std::unique_ptr<Decoder> decoder_for(int first_byte) {
  if (first_byte == kGzip) {
    return std::make_unique<Gzip>();
  }
  if (begins_a_frame(first_byte)) {
    return std::make_unique<Zstd>();
  }
  return nullptr;
}

}  // namespace ration::logs
