// How an opener gets descriptors of the physical memory that a block lies in: from its exporter, by a socket beside the
// exporter's file (its name and `.sock`). One request for a few parts each connection.
// Layer: ledger. Threads: one opens and removes, one serves; any asks. Owns: the socket, one in a process; forked
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
  std::uint64_t first = 0;  // of the parts that are wanted
};

enum class PartsState : std::uint32_t {
  sent,
  no_block,  // the token names none that may be open
  refused,   // no memory, or no number for a descriptor
};

// The parts of a block from `first` on; a descriptor comes with each.
struct PartReply {
  static constexpr std::uint64_t kMagic = 0x544e455349544152;  // "RATISENT"
  std::uint64_t magic = kMagic;
  PartsState state = PartsState::no_block;
  std::uint32_t count = 0;
  std::uint64_t total = 0;  // parts of the block
  std::array<std::uint64_t, kPartsAtOnce> bytes{};
};

class PartSocket {
 public:
  // False: `problem` says why. Also after the program has closed it.
  static bool open(const std::string &state_folder, std::uint64_t exporter, std::string &problem);
  // Nothing can be asked for any more; receive() returns.
  static void shut();
  static void remove(const std::string &state_folder, std::uint64_t exporter);

  enum class Received {
    request,
    nothing,  // of use, for at most 2 s
    closed,
  };
  // Waits for a request by a process of this user, or root's.
  static Received receive(PartRequest &request);
  // False: the descriptors cannot be sent. Never waits.
  static bool answer(const PartReply &reply, const int *files);
  static void hang_up();
};

// Beside the name of the exporter's file.
std::string part_socket_name(std::uint64_t exporter);
bool is_part_socket(const std::string &name);
// REQUIRES: is_part_socket(name).
void remove_socket_of_dead(int folder, const std::string &name);

// Parts that were received, and their descriptors, which no forked child gets.
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
  no_descriptors,  // here or there
  no_answer,       // until `deadline_ns` (of now_ns())
};
Fetched fetch_parts(const std::string &state_folder, const PartRequest &request, std::uint64_t deadline_ns,
                    Parts &parts);

}  // namespace ration::ledger
