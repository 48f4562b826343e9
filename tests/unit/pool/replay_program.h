// A scratch folder, and a run of the program pool_replay.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "catch.h"

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "pool-replay-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] std::string file(const std::string &name) const { return (path_ / name).string(); }
  [[nodiscard]] std::string write(const std::string &name, const std::string &content) const {
    std::ofstream(file(name), std::ios::binary) << content;
    return file(name);
  }

 private:
  std::filesystem::path path_;
};

struct Ran {
  int status;
  std::string output;  // stdout and stderr
};

inline Ran run(const std::string &arguments) {
  const std::string command = std::string(RATION_POOL_REPLAY) + " " + arguments + " 2>&1";
  FILE *pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ran ran{};
  std::array<char, 4096> buffer;
  while (const std::size_t got = fread(buffer.data(), 1, buffer.size(), pipe)) ran.output.append(buffer.data(), got);
  const int status = pclose(pipe);
  ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ran;
}
