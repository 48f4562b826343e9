// Takes on another user's rights, to read files that this other user may have tampered with. Layer: cli. Threads: one.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

namespace ration::cli {

// If this process is root, gives it another user's rights for the object's lifetime; otherwise does nothing. The ledger
// trusts only files of the effective user, and a folder's owner must not be able to make root read other files.
class AsUser {
 public:
  explicit AsUser(uid_t user) : before_(geteuid()), changed_(user != before_ && before_ == 0 && seteuid(user) == 0) {}
  ~AsUser() {
    if (changed_ && seteuid(before_) != 0) {
      std::abort();  // cannot happen: the saved user is root
    }
  }
  AsUser(const AsUser &) = delete;
  AsUser &operator=(const AsUser &) = delete;

 private:
  const uid_t before_;
  const bool changed_;
};

}  // namespace ration::cli
