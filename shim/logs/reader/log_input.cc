#include "logs/reader/log_input.h"

#include <sys/stat.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <streambuf>
#include <string_view>
#include <vector>

namespace ration::logs {
namespace {

constexpr std::size_t kLongestLine = 256U << 20U;  // a `meta` has the command line and some of the environment

// The first byte of a zstd frame (RFC 8878, 3.1), or of a skippable one, with which pzstd begins. A log begins with
// '{'.
bool begins_a_frame(int byte) {
  return byte == 0x28 || (byte >= 0x50 && byte <= 0x5f);
}

}  // namespace

class LogInput::Frames : public std::streambuf {
 public:
  explicit Frames(std::istream &file)
      : file_(file), decoder_(ZSTD_createDStream()), in_(ZSTD_DStreamInSize()), out_(ZSTD_DStreamOutSize()) {
    if (decoder_ == nullptr) {
      problem_ = std::strerror(ENOMEM);
    }
  }
  ~Frames() override { ZSTD_freeDStream(decoder_); }
  Frames(const Frames &) = delete;
  Frames &operator=(const Frames &) = delete;

  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] const std::string &problem() const { return problem_; }

 protected:
  int_type underflow() override {
    ZSTD_outBuffer out{out_.data(), out_.size(), 0};
    while (problem_.empty() && out.pos == 0) {
      if (next_.pos == next_.size && !has_more_ && !refill()) {
        break;
      }
      const std::size_t wanted = ZSTD_decompressStream(decoder_, &out, &next_);
      if (ZSTD_isError(wanted) != 0) {
        problem_ = problem_of(wanted);
        break;
      }
      is_in_frame_ = wanted != 0;
      has_more_ = is_in_frame_ && out.pos == out.size;
    }
    if (out.pos == 0) {
      return traits_type::eof();
    }
    setg(out_.data(), out_.data(), out_.data() + out.pos);
    return bounded({out_.data(), out.pos}) ? traits_type::to_int_type(*gptr()) : traits_type::eof();
  }

 private:
  bool refill() {
    file_.read(in_.data(), static_cast<std::streamsize>(in_.size()));
    next_ = {in_.data(), static_cast<std::size_t>(file_.gcount()), 0};
    taken_ += next_.size;
    if (next_.size == 0) {
      problem_ = file_.bad() ? "it cannot be read" : is_in_frame_ ? "the compressed file was cut off" : "";
    }
    return next_.size != 0;
  }

  std::string problem_of(std::size_t error) const {
    const ZSTD_ErrorCode code = ZSTD_getErrorCode(error);
    if (code == ZSTD_error_prefix_unknown && line_bytes_ == 0 && !has_text_) {
      return "not a log of Ration: it begins neither as a log nor as one that zstd compressed";
    }
    return std::string("it cannot be decompressed: ") + ZSTD_getErrorString(code);
  }

  // A small file can hold a line that no memory holds.
  bool bounded(std::string_view text) {
    has_text_ = true;
    const std::size_t end = text.rfind('\n');
    line_bytes_ = end == std::string_view::npos ? line_bytes_ + text.size() : text.size() - end - 1;
    if (line_bytes_ > kLongestLine) {
      problem_ = "a line of it is longer than that of any record";
      setg(nullptr, nullptr, nullptr);
    }
    return line_bytes_ <= kLongestLine;
  }

  std::istream &file_;
  ZSTD_DStream *const decoder_;
  std::vector<char> in_;
  std::vector<char> out_;
  ZSTD_inBuffer next_{nullptr, 0, 0};
  bool has_more_ = false;    // the decoder may have text that did not fit
  bool is_in_frame_ = true;  // no whole frame has been read
  bool has_text_ = false;
  std::size_t line_bytes_ = 0;  // of the line that has not ended
  std::uint64_t taken_ = 0;
  std::string problem_;
};

LogInput::LogInput(const std::string &path) {
  struct stat status {};
  if (stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
    problem_ = std::strerror(EISDIR);
  }
  errno = 0;
  file_ = std::make_unique<std::ifstream>(path, std::ios::binary);
  text_ = file_.get();
  if (!*file_ && problem_.empty()) {
    problem_ = errno != 0 ? std::strerror(errno) : "it cannot be opened";
  }
  if (problem_.empty() && begins_a_frame(file_->peek())) {
    frames_ = std::make_unique<Frames>(*file_);
    decompressed_ = std::make_unique<std::istream>(frames_.get());
    text_ = decompressed_.get();
  } else if (problem_.empty()) {
    file_->clear();  // peek at the end of an empty file
  }
}

LogInput::~LogInput() = default;

std::uint64_t LogInput::compressed_bytes() const {
  return frames_ != nullptr ? frames_->taken() : 0;
}

const std::string &LogInput::problem() const {
  return problem_.empty() && frames_ != nullptr ? frames_->problem() : problem_;
}

}  // namespace ration::logs
