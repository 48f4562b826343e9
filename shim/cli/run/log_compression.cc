#include "cli/run/log_compression.h"

#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>

#include "base/file_identity.h"
#include "base/file_name.h"
#include "cli/run/ended_log.h"
#include "config/settings.h"
#include "config/values/quotes.h"
#include "logs/output/whole_file.h"

namespace ration::cli {

namespace {

// No higher level up to 5 makes a log smaller.
constexpr int kLevel = 1;

bool is_link_to(const std::string &name, const struct stat &file) {
  struct stat link {};
  struct stat there {};
  return lstat(name.c_str(), &link) == 0 && S_ISLNK(link.st_mode) && stat(name.c_str(), &there) == 0 &&
         identity_of(there) == identity_of(file);
}

// Removes the compressed log of an earlier run, as this run has replaced its log: readers of LOG.zst find the plain
// one.
void remove_earlier(const std::string &target) {
  struct stat old {};
  if (lstat(target.c_str(), &old) == 0 && S_ISREG(old.st_mode) && logs::is_log(target)) {
    unlink(target.c_str());
  }
}

// Design: design/log.md#compression
class LogCompression {
 public:
  explicit LogCompression(const std::string &folder) : folder_(folder) {}

  // Why the log is not, or not completely, compressed; empty if it is, or if no log was to be compressed.
  std::string compress(const events::Summary &process);

 private:
  std::optional<std::string> asked_name(const std::string &path, std::int64_t pid) const;
  std::string compress_file(const OpenFile &log, const std::string &path);
  std::string compress_into(const OpenFile &log, std::uint64_t bytes, const OpenFile &out);
  std::string compress_previous(const std::string &path, std::int64_t pid);

  const std::string &folder_;
  HeldSignals signals_;
};

// The name of the plain log that the process was told to write; nullopt if this run has no log to compress there. The
// log's first line names the run and the setting: by now another run, or a process with its own setting, may have taken
// the name.
std::optional<std::string> LogCompression::asked_name(const std::string &path, std::int64_t pid) const {
  const std::optional<logs::Record> meta = meta_of_run(path, pid, folder_);
  if (!meta) {
    return std::nullopt;
  }
  try {
    const std::string setting = meta->value("settings").at("log").at("value").get<std::string>();
    if (config::plain_log(setting) == setting) {
      return std::nullopt;
    }
    const std::string program = meta->value("argv").at(0).get<std::string>();
    return config::expand_path(config::plain_log(setting), pid, meta->value("host").get<std::string>(),
                               file_name(program));
  } catch (const nlohmann::json::exception &) {
    return std::nullopt;
  }
}

std::string LogCompression::compress_into(const OpenFile &log, std::uint64_t bytes, const OpenFile &out) {
  const std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx *)> encoder(ZSTD_createCCtx(), &ZSTD_freeCCtx);
  std::vector<char> from(ZSTD_CStreamInSize());
  std::vector<char> into(ZSTD_CStreamOutSize());
  if (encoder == nullptr) {
    return std::strerror(ENOMEM);
  }
  ZSTD_CCtx_setParameter(encoder.get(), ZSTD_c_compressionLevel, kLevel);
  ZSTD_CCtx_setParameter(encoder.get(), ZSTD_c_checksumFlag, 1);
  ZSTD_CCtx_setPledgedSrcSize(encoder.get(), bytes);  // an error if the file grows meanwhile
  for (std::uint64_t at = 0;;) {
    if (signals_.have_come()) {
      return "a signal ended the compression";
    }
    const ssize_t got = pread(log.number, from.data(), from.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) {
      continue;
    }
    if (got < 0) {
      return std::strerror(errno);
    }
    at += static_cast<std::uint64_t>(got);
    ZSTD_inBuffer in{from.data(), static_cast<std::size_t>(got), 0};
    for (std::size_t left = 1; got == 0 ? left != 0 : in.pos < in.size;) {
      ZSTD_outBuffer block{into.data(), into.size(), 0};
      left = ZSTD_compressStream2(encoder.get(), &block, &in, got == 0 ? ZSTD_e_end : ZSTD_e_continue);
      if (ZSTD_isError(left) != 0) {
        return ZSTD_getErrorName(left);
      }
      if (!logs::write_all(out.number, {into.data(), block.pos})) {
        return std::strerror(errno);
      }
    }
    if (got == 0) {
      return "";
    }
  }
}

std::string LogCompression::compress_file(const OpenFile &log, const std::string &path) {
  const std::string target = path + config::kCompressedLog;
  struct stat plain {};
  struct stat old {};
  if (fstat(log.number, &plain) != 0) {
    return std::strerror(errno);
  }
  if (lstat(target.c_str(), &old) == 0 && (!S_ISREG(old.st_mode) || (old.st_size != 0 && !logs::is_log(target)))) {
    return config::printable(target) + " is not a log, and stays as it is";
  }
  UnfinishedLog unfinished(target);
  const OpenFile &out = unfinished.file();
  if (out.number < 0) {
    return std::strerror(errno);
  }
  std::string problem = compress_into(log, static_cast<std::uint64_t>(plain.st_size), out);
  if (problem.empty()) {
    problem = unfinished.replace(path, plain);  // the plain log is removed once the compressed one is on the disk
  }
  if (!problem.empty()) {
    remove_earlier(target);
    return problem;
  }
  return unlink(path.c_str()) == 0 ? "" : std::strerror(errno);
}

std::string LogCompression::compress_previous(const std::string &path, std::int64_t pid) {
  const OpenFile log(open_ended(path));
  return log.number < 0 || !asked_name(path, pid) ? "" : compress_file(log, path);
}

std::string LogCompression::compress(const events::Summary &process) {
  const std::string &path = process.log;
  const std::string begun = path + ".new";
  if (access(path.c_str(), F_OK) != 0 && asked_name(begun, process.pid)) {
    (void)std::rename(begun.c_str(), path.c_str());  // the process was killed before it could rename it
  }
  const OpenFile log(open_ended(path));
  if (log.number < 0) {
    return errno == ENOENT ? "" : std::strerror(errno);
  }
  struct stat status {};
  const std::optional<std::string> name = asked_name(path, process.pid);
  if (fstat(log.number, &status) != 0 || !S_ISREG(status.st_mode) || !name) {
    return "";
  }
  std::string problem = lock_log(log.number, process.pid);
  if (problem.empty() && is_link_to(*name, status)) {
    problem = config::printable(*name) + " is a symbolic link to it";
    remove_earlier(*name + config::kCompressedLog);
  }
  if (!problem.empty()) {
    remove_earlier(path + config::kCompressedLog);
    return problem;
  }
  problem = compress_previous(path + ".previous", process.pid);
  const std::string of_last = compress_file(log, path);
  if (of_last.empty() && asked_name(begun, process.pid)) {
    unlink(begun.c_str());  // the process was killed before it renamed its last part
  }
  return problem.empty() ? of_last : problem;
}

}  // namespace

std::vector<std::string> compress_logs(const std::vector<events::Summary> &summaries, const std::string &folder) {
  LogCompression compression(folder);
  std::vector<std::string> lines;
  for (const events::Summary &process : summaries) {
    const std::string problem = process.log.empty() ? "" : compression.compress(process);
    if (!problem.empty()) {
      lines.push_back("run: the log " + config::printable(process.log) + " stays as it is, not compressed: " + problem);
    }
  }
  return lines;
}

}  // namespace ration::cli
