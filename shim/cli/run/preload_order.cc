#include "cli/run/preload_order.h"

#include <algorithm>

namespace ration::cli {

namespace {

std::vector<std::string> split(std::string_view text, std::string_view separators) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) {
      parts.emplace_back(text.substr(0, end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::string join(const std::vector<std::string> &parts) {
  std::string text;
  for (const std::string &part : parts) {
    text += (text.empty() ? "" : ":") + part;
  }
  return text;
}

std::string_view base_name(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);
}

bool is_asan(std::string_view library) {
  const std::string_view name = base_name(library);
  return name.substr(0, 10) == "libasan.so" || name.substr(0, 17) == "libclang_rt.asan-";
}

}  // namespace

std::string preload_order(std::string_view present, const std::string &library,
                          const std::vector<std::string> &needed) {
  std::vector<std::string> order = split(present, " :");
  const std::string_view name = base_name(library);
  order.erase(
      std::remove_if(order.begin(), order.end(), [&](const std::string &each) { return base_name(each) == name; }),
      order.end());
  const auto needed_asan =
      std::find_if(needed.begin(), needed.end(), [](const std::string &each) { return is_asan(each); });
  std::string first;
  if (!order.empty() && is_asan(order.front())) {
    first = order.front();
    order.erase(order.begin());
  } else if (needed_asan != needed.end()) {
    const auto listed = std::find_if(order.begin(), order.end(), [](const std::string &each) { return is_asan(each); });
    first = listed == order.end() ? *needed_asan : *listed;
    if (listed != order.end()) {
      order.erase(listed);
    }
  }
  order.insert(order.begin(), library);
  if (!first.empty()) {
    order.insert(order.begin(), first);
  }
  return join(order);
}

std::string prepend_folder(std::string_view present, const std::string &folder) {
  if (present == folder || present.substr(0, folder.size() + 1) == folder + ":") {
    return std::string(present);
  }
  return present.empty() ? folder : folder + ":" + std::string(present);
}

}  // namespace ration::cli
