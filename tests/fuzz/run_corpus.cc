// Runs a fuzz target on every file of the given folders, without libFuzzer: works with any compiler.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *bytes, std::size_t size);

int main(int count, char **folders) {
  std::vector<std::filesystem::path> files;
  for (int index = 1; index < count; ++index) {
    for (const auto &entry : std::filesystem::directory_iterator(folders[index])) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::size_t run = 0;
  for (const std::filesystem::path &file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last name is that of the failure
    std::ifstream stream(file, std::ios::binary);
    const std::vector<char> content{std::istreambuf_iterator<char>(stream), {}};
    if (!stream || content.empty()) continue;
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t *>(content.data()), content.size());
    ++run;
  }
  std::printf("covered: %zu of %zu\n", run, files.size());
  return run == files.size() && run != 0 ? 0 : 1;
}
