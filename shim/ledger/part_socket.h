// The socket over which the opener of a block gets the descriptors of the block's physical memory from the exporter.
// The socket's name is that of the exporter's file with `.sock` added. Each connection carries one request for a few
// parts.
// Layer: ledger. Threads: one opens and removes it, one serves; any may ask. Owns: the process's one socket; forked
// children close it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/fork_exclusion.h"
#include "ledger/export_layout.h"
#include "ledger/group_file.h"

namespace ration::ledger {

inline constexpr std::uint32_t kPartsAtOnce = 32;

struct PartRequest {
  static constexpr std::uint64_t kMagic = 0x5452415049544152;  // "RATIPART"
  std::uint64_t magic = kMagic;
  ExportToken token;
  std::uint64_t first = 0;  // the number of the first part that is wanted
};

enum class PartsState : std::uint32_t {
  sent,
  no_block,  // the token names no block that the sender may open
  refused,   // the exporter had no memory or no descriptor left
};

// The parts of a block from `first` on; each is sent with its descriptor.
struct PartReply {
  static constexpr std::uint64_t kMagic = 0x544e455349544152;  // "RATISENT"
  std::uint64_t magic = kMagic;
  PartsState state = PartsState::no_block;
  std::uint32_t count = 0;
  std::uint64_t total = 0;  // number of parts of the block
  std::array<std::uint64_t, kPartsAtOnce> bytes{};
};

class PartSocket {
 public:
  // Opens the socket, and opens it again if the program has closed it. Returns false on failure; `problem` says why.
  static bool open(const std::string &state_folder, std::uint64_t exporter, std::string &problem);
  // Ends all requests; a waiting receive() returns.
  static void shut();
  static void remove(const std::string &state_folder, std::uint64_t exporter);

  enum class Received {
    request,
    nothing,  // no valid request within 2 s
    closed,
  };
  // Waits for a request by a process of this user or of root.
  static Received receive(PartRequest &request);
  // Sends the reply without waiting. Returns false if the descriptors cannot be sent.
  static bool answer(const PartReply &reply, const int *files);
  static void hang_up();
};

// The name of an exporter's socket, and a test whether `name` is such a name.
std::string part_socket_name(std::uint64_t exporter);
bool is_part_socket(const std::string &name);
// Removes the socket if its exporter is dead. REQUIRES: is_part_socket(name).
void remove_socket_of_dead(int folder, const std::string &name);

// The parts that were received, with their descriptors. While this object holds them, no forked child inherits them.
struct Parts {
  std::optional<ForkExclusion> exclusion;
  PartReply reply;
  std::array<Descriptor, kPartsAtOnce> files;

  void clear() {
    for (Descriptor &file : files) {
      file = Descriptor();
    }
    exclusion.reset();
  }
};

enum class Fetched {
  parts,
  no_block,
  no_descriptors,  // no descriptor was left in this process or in the exporter
  no_answer,       // no answer came before `deadline_ns` (on the clock of now_ns())
};
Fetched fetch_parts(const std::string &state_folder, const PartRequest &request, std::uint64_t deadline_ns,
                    Parts &parts);

}  // namespace ration::ledger
