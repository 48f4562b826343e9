// The operations of a program. Each operation makes its preparations and one driver call. It returns the call's code,
// then `:` and what the program saw. "-": the object does not exist. "?": nothing that could be compared.
// Layer: the driver API, objects.h, stamp.h, flags.h. Threads: see objects.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tests/oracle/objects.h"

namespace oracle {

using Words = std::vector<std::string>;  // arguments of an operation; a missing one reads as ""
using Operation = std::string (*)(const Words &words);
using Operations = std::map<std::string, Operation>;

// Each file of operations adds its own operations.
void add_contexts(Operations &all);
void add_allocations(Operations &all);
void add_ordered(Operations &all);
void add_physical(Operations &all);
void add_frees(Operations &all);
void add_queries(Operations &all);
void add_work(Operations &all);
void add_failing(Operations &all);

// Registers the kernel with the simulated driver. To be called before cuInit.
void register_kernel();

inline constexpr const char *kSkipped = "-";
inline constexpr const char *kIncomparable = "?";

inline std::string word(const Words &words, size_t index) {
  return index < words.size() ? words[index] : "";
}
size_t size_word(const Words &words, size_t index);
std::string code_text(CUresult code);

// The object that a word names; null if the object is not alive.
Block *live_block(const Words &words, size_t index);
// A block that an allocation may use; null if the program already uses the number.
Block *unused_block(const Words &words, size_t index);
Context *live_context(const Words &words, size_t index);
// The stream that a word names: default, legacy, own or s3. Returns false if the program's stream is not alive.
bool stream_word(const Words &words, size_t index, CUstream &stream);
// A place in a block: start, middle, last, or end (one past the last).
CUdeviceptr place_word(const Block &block, const Words &words, size_t index);

}  // namespace oracle
