#include "unit/events/log_lines.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>

std::string Catch::StringMaker<nlohmann::json>::convert(const nlohmann::json &value) {
  return value.dump();
}

namespace ration::test {

std::string text_of(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<json> log_lines(const std::string &path) {
  const std::string text = text_of(path);
  if (!text.empty() && text.back() != '\n') {
    throw std::runtime_error("half a line at the end of " + path);
  }
  std::vector<json> lines;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = text.find('\n', start);
    lines.push_back(json::parse(text.substr(start, end - start)));
    start = end + 1;
  }
  return lines;
}

std::vector<json> of_type(const std::vector<json> &lines, const std::string &type) {
  std::vector<json> matching;
  for (const json &line : lines) {
    if (line.at("t") == type) {
      matching.push_back(line);
    }
  }
  return matching;
}

bool is_consecutive(const std::vector<json> &lines) {
  for (std::size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].at("seq") != i) {
      return false;
    }
  }
  return !lines.empty() && !lines[0].contains("seq");
}

void Sums::reserve(const json &line) {
  std::uint64_t &bytes = reserved[line.at("dev")];
  bytes += line.at("size").get<std::uint64_t>();
  reserved_peak[line.at("dev")] = std::max(reserved_peak[line.at("dev")], bytes);
}

void Sums::release(const json &line) {
  reserved[line.at("dev")] -= line.at("size").get<std::uint64_t>();
}

Sums sums_of(const std::vector<json> &lines) {
  Sums sums;
  std::set<std::string> owned;
  for (const json &line : lines) {
    const std::string type = line.at("t");
    if (type == "alloc") {
      ++sums.allocs;
      std::uint64_t &live = sums.live[line.at("dev")];
      live += line.at("size").get<std::uint64_t>();
      sums.peak[line.at("dev")] = std::max(sums.peak[line.at("dev")], live);
      sums.one_owner_each = owned.insert(line.at("addr")).second && sums.one_owner_each;
    } else if (type == "free") {
      ++sums.frees;
      sums.live[line.at("dev")] -= line.at("size").get<std::uint64_t>();
      sums.one_owner_each = owned.erase(line.at("addr")) == 1 && sums.one_owner_each;
    } else if (type == "oom") {
      ++(line.at("api") == "cuIpcGetMemHandle" ? sums.refused_ipc : sums.ooms);
    } else if (type == "wait") {
      ++sums.waits;
    }
    if (type == "slab_alloc" || (type == "alloc" && line.at("src") == "driver")) {
      sums.reserve(line);
    } else if (type == "slab_free" || (type == "free" && line.at("src") == "driver")) {
      sums.release(line);
    }
  }
  return sums;
}

}  // namespace ration::test
