// The handle by which pthread_atfork(3) identifies this library. Every shared object has one (Itanium C++ ABI,
// 3.3.5.3), usually from the compiler's start files, which this library is linked without. Layer: preload.
extern "C" {
__attribute__((visibility("hidden"))) void *dso_handle __asm__("__dso_handle") = nullptr;
}
