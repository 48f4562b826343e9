#include "cli/usage/process_facts.h"

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "catch.h"

using namespace ration::cli;

namespace {

class DriverFiles {
 public:
  DriverFiles() {
    char name[] = "/tmp/ration-facts-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~DriverFiles() { std::filesystem::remove_all(path_); }
  [[nodiscard]] const std::string &path() const { return path_; }
  void add(const std::string &device, const std::string &text) const {
    std::filesystem::create_directory(path_ + "/" + device);
    std::ofstream(path_ + "/" + device + "/information") << text;
  }

 private:
  std::string path_;
};

}  // namespace

TEST_CASE("devices are numbered in the order of the bus") {
  const DriverFiles driver;
  driver.add("0000:3b:00.0", "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-b\nDevice Minor: \t 0\n");
  driver.add("0000:1a:00.0", "Model: \t\t NVIDIA A100\nGPU UUID: \t GPU-a\nDevice Minor: \t 1\n");
  driver.add("0000:86:00.0", "GPU UUID: \t GPU-? ? ?\n");
  driver.add("0000:af:00.0", "GPU UUID: \t GPU-c\n");
  CHECK(devices_of_machine(driver.path()) == std::map<std::string, int>{{"GPU-a", 0}, {"GPU-b", 1}, {"GPU-c", 3}});
}

TEST_CASE("without the driver's files no device has an index") {
  CHECK(devices_of_machine("/nowhere/at/all").empty());
}

TEST_CASE("a command line has blanks between its words, and is unknown where there is no process") {
  CHECK_FALSE(command_line(getpid()).empty());
  CHECK(command_line(getpid()).find('\0') == std::string::npos);
  CHECK(command_line(-1).empty());
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    _exit(0);
  }
  siginfo_t ended{};
  REQUIRE(waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(command_line(child).empty());  // a zombie has none
  CHECK(owner_of(child) == geteuid());
  waitpid(child, nullptr, 0);
  CHECK_FALSE(owner_of(child).has_value());
}

TEST_CASE("a user without a name is a number") {
  CHECK(user_name(0) == "root");
  CHECK(user_name(3999999999) == "3999999999");
}
