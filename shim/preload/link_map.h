// Reads the loader's list of objects without any libc call, so it works before anything is initialised.
// Layer: preload. Threads: reads only; the list belongs to the loader. Called from: the first interposed call, possibly
// before every constructor or inside a sanitizer's start (which interposes dl_iterate_phdr and strcmp).
#pragma once

#include <link.h>

namespace ration::preload {

// Equality of C strings, freestanding.
bool same(const char *a, const char *b);
bool starts_with(const char *text, const char *prefix);
const char *base_name(const char *path);

// This library's entry in the list; nullptr before the list exists.
const link_map *own_map();

// The address of `name` in the first object after this library that defines it, as dlsym(RTLD_NEXT) from here. The
// default version is preferred to hidden ones (DT_VERSYM). nullptr: no object defines it.
void *next_definition(const char *name);

// Whether this one object defines `name` as a function.
bool defines(const link_map &map, const char *name);

}  // namespace ration::preload
