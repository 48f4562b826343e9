#include "cli/launch/preload_order.h"

#include <algorithm>

#include "base/file_name.h"
#include "cli/launch/elf_file.h"

namespace ration::cli {

namespace {

bool is_asan(std::string_view library) {
  return file_name(library).starts_with("libasan.so") || file_name(library).starts_with("libclang_rt.asan-");
}

}  // namespace

std::vector<std::string> entries_of_preload(std::string_view text, std::string_view between) {
  std::vector<std::string> entries;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(between), text.size());
    if (end > 0) {
      entries.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return entries;
}

bool is_our_library(const std::string &path) {
  return file_name(path) == kOurLibrary || read_elf(path).soname == kOurLibrary;
}

std::string preload_order(std::string_view present, const std::string &library,
                          const std::vector<std::string> &needed) {
  std::vector<std::string> listed = entries_of_preload(present);
  std::erase_if(listed, [&](const std::string &each) { return file_name(each) == file_name(library); });
  const auto needed_asan = std::find_if(needed.begin(), needed.end(), is_asan);
  const auto listed_asan = std::find_if(listed.begin(), listed.end(), is_asan);
  std::string order = library;
  if (listed_asan != listed.end() && (listed_asan == listed.begin() || needed_asan != needed.end())) {
    order = *listed_asan + ":" + library;
    listed.erase(listed_asan);
  } else if (needed_asan != needed.end()) {
    order = *needed_asan + ":" + library;
  }
  for (const std::string &each : listed) {
    order += ":" + each;
  }
  return order;
}

std::string prepend_folder(std::string_view present, const std::string &folder) {
  if (present == folder || present.starts_with(folder + ":")) {
    return std::string(present);
  }
  return present.empty() ? folder : folder + ":" + std::string(present);
}

}  // namespace ration::cli
