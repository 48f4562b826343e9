#include "ledger/join_descriptor.h"

#include <unistd.h>

#include <atomic>

#include "base/file_identity.h"
#include "base/fork_exclusion.h"
#include "ledger/life_probe.h"

namespace ration::ledger {
namespace {

constinit ReentrantGate::Owner gate_owner{nullptr};
constinit std::atomic<int> joining{-1};  // -1: none
constinit std::atomic<dev_t> joining_device{0};
constinit std::atomic<ino_t> joining_inode{0};

void in_child() {
  gate_owner.store(nullptr);
  const int descriptor = joining.exchange(-1);
  FileIdentity found;
  // Another thread may have received the number, between the close and the store that follows it.
  if (descriptor >= 0 && identify(descriptor, found) &&
      found == FileIdentity{joining_device.load(), joining_inode.load()}) {
    close(descriptor);
  }
  close_inherited_probes();
}

ReentrantGate::Owner &watched_gate() {
  call_in_forked_child(in_child);
  return gate_owner;
}

}  // namespace

JoinGate::JoinGate() : ReentrantGate(watched_gate()) {}

void JoinDescriptor::take(Descriptor opened) {
  call_in_forked_child(in_child);
  opened_ = std::move(opened);
  FileIdentity found;
  if (opened_ && identify(opened_.number(), found)) {
    joining_device.store(found.device);
    joining_inode.store(found.inode);
    joining.store(opened_.number());
  }
}

void JoinDescriptor::close() {
  opened_ = Descriptor();
  joining.store(-1);
}

JoinDescriptor::~JoinDescriptor() {
  close();
}

}  // namespace ration::ledger
