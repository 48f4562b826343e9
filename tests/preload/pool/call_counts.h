// Counts which driver functions were called between two points, by export. Layer: simcuda.h. Threads: one.
#pragma once

#include <simcuda/simcuda.h>
#include <stdio.h>

#include <fstream>
#include <map>
#include <string>

namespace preload::pool {

class CallCounts {
 public:
  // `exports` names a file in which every word that begins with `cu` is an export.
  explicit CallCounts(const char *exports) {
    std::ifstream file(exports);
    for (std::string word; file >> word;) {
      while (!word.empty() && word.back() == ';') word.pop_back();
      if (word.compare(0, 2, "cu") == 0 && simcuda_calls(word.c_str()) != ~0ull) before_[word] = 0;
    }
    start();
  }
  void start() {
    for (auto &[symbol, calls] : before_) calls = simcuda_calls(symbol.c_str());
  }
  // Prints a line `calls SYMBOL N` for each export that was called, then how many exports are watched.
  void print() const {
    for (const auto &[symbol, calls] : before_) {
      if (const auto now = simcuda_calls(symbol.c_str()); now != calls) {
        dprintf(1, "calls %s %llu\n", symbol.c_str(), now - calls);
      }
    }
    dprintf(1, "watched %zu\n", before_.size());
  }

 private:
  std::map<std::string, unsigned long long> before_;
};

}  // namespace preload::pool
