#include "measured.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>

namespace ration::bench {

double mutex_pair_ns(std::size_t pairs) {
  static std::mutex mutex;
  return ns_each(pairs, [pairs] {
    for (std::size_t i = 0; i < pairs; ++i) {
      mutex.lock();
      asm volatile("" : : "g"(i) : "memory");
      mutex.unlock();
    }
  });
}

void Figures::least(const std::string &name, const std::string &unit, double value) {
  const auto [entry, is_new] = figures_.try_emplace(name, Measured{unit, value});
  if (!is_new) entry->second.value = std::min(entry->second.value, value);
}

void Figures::set(const std::string &name, const std::string &unit, double value) {
  figures_.insert_or_assign(name, Measured{unit, value});
}

void Figures::report(const std::string &bench, const std::string &json) const {
  std::ostringstream text;
  text << "{\"schema\":\"ration.bench/1\",\"bench\":\"" << bench << "\",\"figures\":[";
  const char *separator = "";
  for (const auto &[name, measured] : figures_) {
    std::printf("%-8s %-24s %10.2f %s\n", bench.c_str(), name.c_str(), measured.value, measured.unit.c_str());
    text << separator << "{\"name\":\"" << name << "\",\"unit\":\"" << measured.unit
         << "\",\"value\":" << measured.value << "}";
    separator = ",";
  }
  text << "]}\n";
  if (json.empty()) return;
  std::ofstream file(json);
  file << text.str();
  if (!file.flush()) throw std::runtime_error("cannot write " + json);
}

}  // namespace ration::bench
