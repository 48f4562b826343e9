#include "logs/reader/log_input.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <streambuf>
#include <string_view>
#include <utility>
#include <vector>

#include "logs/reader/decoder.h"

namespace ration::logs {
namespace {

constexpr std::size_t kBuffer = 128U << 10U;
constexpr std::size_t kLongestLine = 256U << 20U;  // a `meta` has the command line and a part of the environment

}  // namespace

class LogInput::Frames : public std::streambuf {
 public:
  Frames(std::istream &file, std::unique_ptr<Decoder> decoder)
      : file_(file), decoder_(std::move(decoder)), in_(kBuffer), out_(kBuffer) {}

  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  [[nodiscard]] const std::string &problem() const { return problem_; }

 protected:
  int_type underflow() override {
    Step step;
    while (problem_.empty() && step.written == 0) {
      if (next_.at == next_.size && !has_more_ && !refill()) {
        break;
      }
      step = decoder_->step(next_, out_);
      problem_ = step.problem;
      is_in_frame_ = step.is_in_frame;
      has_more_ = is_in_frame_ && step.written == out_.size();
    }
    if (step.written == 0) {
      return traits_type::eof();
    }
    setg(out_.data(), out_.data(), out_.data() + step.written);
    return bounded({out_.data(), step.written}) ? traits_type::to_int_type(*gptr()) : traits_type::eof();
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

  // False if a line is too long. Even a small compressed file can contain a line that does not fit into memory.
  bool bounded(std::string_view text) {
    const std::size_t end = text.rfind('\n');
    line_bytes_ = end == std::string_view::npos ? line_bytes_ + text.size() : text.size() - end - 1;
    if (line_bytes_ > kLongestLine) {
      problem_ = "a line of it is longer than that of any record";
      setg(nullptr, nullptr, nullptr);
    }
    return line_bytes_ <= kLongestLine;
  }

  std::istream &file_;
  const std::unique_ptr<Decoder> decoder_;
  std::vector<char> in_;
  std::vector<char> out_;
  Packed next_;
  bool has_more_ = false;       // the decoder may have more text, which did not fit
  bool is_in_frame_ = true;     // true until a complete frame has been read
  std::size_t line_bytes_ = 0;  // length so far of the unfinished line
  std::uint64_t taken_ = 0;
  std::string problem_;
};

LogInput::LogInput(const std::string &name) {
  const std::string path = name == "-" ? "/dev/stdin" : name;
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
  std::unique_ptr<Decoder> decoder = problem_.empty() ? decoder_for(file_->peek()) : nullptr;
  if (decoder != nullptr) {
    frames_ = std::make_unique<Frames>(*file_, std::move(decoder));
    decompressed_ = std::make_unique<std::istream>(frames_.get());
    text_ = decompressed_.get();
  } else if (problem_.empty()) {
    file_->clear();  // peek() at the end of an empty file has set eofbit
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
