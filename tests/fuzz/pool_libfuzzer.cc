// libFuzzer's entry: plays any bytes as commands (command_text.h) against a pool and the model. run_corpus.cc calls it
// with files.
#include <cstdio>
#include <cstdlib>

#include "command_text.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t size) {
  const std::string wrong = ration::pool::outcome_of(ration::pool::play_of({bytes, size}));
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "the pool %s\n", wrong.c_str());
  std::abort();
}
