// The loader's list of objects, read without any libc call: usable before anything is initialised.
// Layer: front. Threads: reads only; the list is the loader's. Called from: the first interposed call, possibly before
// every constructor, possibly inside a sanitizer's own start (which interposes dl_iterate_phdr and strcmp).
#pragma once

#include <link.h>

namespace ration::front {

// Equality of C strings, freestanding.
bool same(const char *a, const char *b);
bool starts_with(const char *text, const char *prefix);
const char *base_name(const char *path);

// This library's own entry in the list, or nullptr when the list is not there yet.
const link_map *own_map();

// The address of `name` in the first object after us that defines it: what dlsym(RTLD_NEXT) would answer to us. The
// default version wins over hidden ones (DT_VERSYM). nullptr when nobody defines it.
void *next_definition(const char *name);

// Whether this one object defines `name` as a function.
bool defines(const link_map &map, const char *name);

}  // namespace ration::front
