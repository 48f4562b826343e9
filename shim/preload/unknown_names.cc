#include "unknown_names.h"

#include "base/asked_names.h"
#include "preload.h"

namespace ration::preload {
namespace {

RationNames early;  // names passed on before a driver was found

void note(const char *name) {
  if (note_name(coverage.unknown_names, name)) {
    if (auto *const changed = __atomic_load_n(&coverage.changed, __ATOMIC_ACQUIRE)) {
      changed();
    }
  }
}

void note_if_in(void *driver, const char *name) {
  if (real().dlsym(driver, name) != nullptr) {
    note(name);
  }
}

}  // namespace

void note_given(const char *name) {
  if (is_unknown_driver_name(name)) {
    note(name);
  }
}

void note_passed_on(const char *name) {
  if (!is_unknown_driver_name(name)) {
    return;
  }
  // Finding out whether a driver is loaded means asking the loader; look-ups of other libraries' names are spared that.
  const bool is_full = __atomic_load_n(&early.kept, __ATOMIC_RELAXED) >= RATION_NAMES_KEPT / 2;
  if (void *driver = is_full ? loaded_driver() : found_driver()) {
    note_if_in(driver, name);
    return;
  }
  note_name(early, name);
  // Of two racing threads at least one sees what the other stored: this one the driver, or note_driver() the name.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (void *driver = found_driver()) {
    note_if_in(driver, name);
  }
}

void note_driver(void *driver) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);  // pairs with the one in note_passed_on()
  for (unsigned place = 0; place < RATION_NAMES_KEPT; ++place) {
    if (const char *name = name_at(early, place)) {
      note_if_in(driver, name);
    }
  }
}

}  // namespace ration::preload
