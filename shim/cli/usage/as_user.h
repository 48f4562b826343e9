// The rights of another user, for what that user could have prepared. Layer: cli. Threads: one.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cstdlib>

namespace ration::cli {

// Has the rights of another user while it lives, where this process may take them: root. The ledger trusts only what
// its own user owns, and a folder's owner must not make root read other files.
class AsUser {
 public:
  explicit AsUser(uid_t user) : before_(geteuid()), changed_(user != before_ && before_ == 0 && seteuid(user) == 0) {}
  ~AsUser() {
    if (changed_ && seteuid(before_) != 0) {
      std::abort();  // cannot be: the saved user is root
    }
  }
  AsUser(const AsUser &) = delete;
  AsUser &operator=(const AsUser &) = delete;

 private:
  const uid_t before_;
  const bool changed_;
};

}  // namespace ration::cli
