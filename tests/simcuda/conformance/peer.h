// Two processes of one simulated machine that execute commands (peer.cc).
#pragma once
#include "tests/catch.h"
#include "tests/simcuda/conformance/child_process.h"

namespace simcuda::conformance {

inline constexpr char kContextBytes[] = "1048576";

class Peer {
 public:
  explicit Peer(const std::string &machine, const std::string &devices = "64MiB,64MiB")
      : child_({},
               {{"SIMCUDA_MACHINE", machine}, {"SIMCUDA_DEVICES", devices}, {"SIMCUDA_CONTEXT_BYTES", kContextBytes}},
               SIMCUDA_FOLDER, SIMCUDA_PEER) {}
  std::string operator()(const std::string &line) {
    child_.send(line);
    return child_.line();
  }
  // The handle of the peer's last allocation.
  std::string share(const std::string &which = "own") {
    const std::string answer = (*this)("share " + which);
    REQUIRE(answer.substr(0, 2) == "0 ");
    return answer.substr(2);
  }
  ChildProcess &child() { return child_; }

 private:
  ChildProcess child_;
};

struct Two {
  const Folder folder;
  Peer exporter{folder.path()}, importer{folder.path()};
};

}  // namespace simcuda::conformance
